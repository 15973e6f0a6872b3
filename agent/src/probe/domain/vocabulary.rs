//! Vocabulary of registries: meaning of labels and status values in RDAP events and WHOIS lines.

/// Parts of a label that mean the end of the registration.
const EXPIRY_LABELS: [&str; 15] = [
    "expir",
    "exp date",
    "valid until",
    "valid till",
    "valid thru",
    "valid through",
    "valid to",
    "paid till",
    "paid until",
    "paid thru",
    "billed until",
    "datebilleduntil",
    "vencimiento",
    "有効期限",
    "사용 종료일",
];
/// Parts with the same meaning, but that a registry may use for another date next to the clear one.
const AMBIGUOUS_EXPIRY_LABELS: [&str; 2] = ["validity", "renewal"];
/// Other things with an expiry or a date of their own: at the registrar, in a telephone number registry, an
/// option on the name, a signature.
const OTHER_LABELS: [&str; 14] = [
    "registrar",
    "option",
    "enum",
    "validation",
    "dnssec",
    "signature",
    "certificate",
    "ssl",
    "grace",
    "redemption",
    "transfer",
    "contact",
    "privacy",
    "last",
];
/// Registries that publish their own date under a label that elsewhere means the registrar's.
const REGISTRAR_LABEL_REGISTRIES: [&str; 1] = ["hr"];
/// Maximum number of words of a label: longer ones are prose.
const MAX_LABEL_WORDS: usize = 6;

/// Normalises a label to lower case, with single spaces for all separators.
pub(super) fn normalized(name: &str) -> String {
    let words = name.split(|c: char| !c.is_alphanumeric()).filter(|status| !status.is_empty());
    words.collect::<Vec<_>>().join(" ").to_lowercase()
}

/// Rank of labels that clearly mean the end of the registration.
const PLAIN: u8 = 1;
/// Rank of labels that may mean another date.
pub(super) const VAGUE: u8 = 2;

/// Returns how clearly a normalised label means the end of the registration: [`PLAIN`] or [`VAGUE`]; `None`
/// for any other label.
pub(super) fn expiry_rank(name: &str, top: &str) -> Option<u8> {
    if name.split(' ').count() > MAX_LABEL_WORDS {
        return None;
    }
    if REGISTRAR_LABEL_REGISTRIES.contains(&top) && name == "registrar registration expiration date" {
        return Some(PLAIN);
    }
    if OTHER_LABELS.iter().any(|other| name.contains(other)) {
        return None;
    }
    if EXPIRY_LABELS.iter().any(|part| name.contains(part)) {
        return Some(PLAIN);
    }
    AMBIGUOUS_EXPIRY_LABELS.iter().any(|part| name.contains(part)).then_some(VAGUE)
}

/// Returns true for a normalised label that means the start of the registration.
pub(super) fn is_registration_date(name: &str) -> bool {
    matches!(name, "registration" | "created" | "registered" | "creation date" | "created on" | "created date")
        || matches!(name, "registered on" | "registered date" | "registration date" | "registration time")
        || matches!(name, "domain created" | "record created" | "record created on" | "domain name commencement date")
}

/// Returns true for a status that means that the registration has expired and waits for redemption or
/// deletion: in the spelling of EPP (RFC 3915) or RDAP (RFC 8056).
pub(super) fn is_lapsed(status: &str) -> bool {
    let status = letters(status);
    status.starts_with("redemptionperiod") || status.starts_with("pendingdelete")
}

/// Returns true for a status that means that the registration is inactive: its date may be long past.
pub(super) fn is_inactive(status: &str) -> bool {
    let status = letters(status);
    let idle = ["expired", "hold", "inactive", "suspend", "deactivat", "quarantine", "graceperiod", "cancel"];
    is_lapsed(&status) || idle.iter().any(|part| status.contains(part))
}

fn letters(status: &str) -> String {
    status.chars().filter(|c| c.is_alphabetic()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_by_what_they_mean() {
        for name in [
            "Registry Expiry Date",
            "expire",
            "expire-date",
            "expires............",
            "Record expires",
            "Record expires on",
            "Expiration Date             ",
            "Domain_Expiration",
            "paid-till",
            "Valid Until",
            "Exp date",
            "domain_datebilleduntil",
            "Fecha de Vencimiento",
            "Date d'expiration",
            "expirationDate",
        ] {
            assert_eq!(expiry_rank(&normalized(name), "zz"), Some(PLAIN), "{name}");
        }
        for name in ["validity", "Renewal date"] {
            assert_eq!(expiry_rank(&normalized(name), "zz"), Some(VAGUE), "{name}");
        }
        for name in [
            "Registrar Registration Expiration Date",
            "registrar expiration",
            "enum validation expiration",
            "option expiration date",
            "Last renewal date",
            "free-date",
            "created",
            "notice the expiration date displayed in this record is",
            "",
        ] {
            assert_eq!(expiry_rank(&normalized(name), "zz"), None, "{name}");
        }
        assert_eq!(expiry_rank("registrar registration expiration date", "hr"), Some(PLAIN));
    }

    #[test]
    fn status_values_are_read_in_either_protocols_spelling() {
        for status in [
            "redemption period",
            "redemptionPeriod",
            "Redemption-Period",
            "pending delete",
            "pendingDelete https://icann.example",
        ] {
            assert!(is_lapsed(status) && is_inactive(status), "{status}");
        }
        for status in ["active", "ok", "client delete prohibited", "serverDeleteProhibited", ""] {
            assert!(!is_lapsed(status) && !is_inactive(status), "{status}");
        }
        assert!(is_inactive("clientHold") && !is_lapsed("clientHold"));
    }
}
