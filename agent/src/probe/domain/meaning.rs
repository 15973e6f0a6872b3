//! The meaning of the names and words that registries use, in events of RDAP and in lines of WHOIS alike.

/// Parts of a name that say that the registration ends then.
const ENDS: [&str; 15] = [
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
/// Parts that mean the same, but of which a registry may have another beside the plain one.
const ENDS_PERHAPS: [&str; 2] = ["validity", "renewal"];
/// Other things that can expire, or have a date of their own beside the registration's: at the registrar, in a register of telephone
/// numbers, by an option on the name, of a signature.
const OTHERS: [&str; 14] = [
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
/// Registries that give their own date under a name which elsewhere stands for the registrar's.
const REGISTRARS_NAME: [&str; 1] = ["hr"];
/// Words in a name of a line or event, at most: longer ones are prose.
const MOST_WORDS: usize = 6;

/// A name in lower case, with single spaces for whatever stands between its words.
pub(super) fn folded(name: &str) -> String {
    let words = name.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ").to_lowercase()
}

/// Rank of names that plainly stand for the end of the registration.
const PLAIN: u8 = 1;
/// Rank of names that may stand for another date.
pub(super) const VAGUE: u8 = 2;

/// How plainly a folded name stands for the end of the registration: [`PLAIN`] or [`VAGUE`]; `None` for any other name.
pub(super) fn end(name: &str, top: &str) -> Option<u8> {
    if name.split(' ').count() > MOST_WORDS {
        return None;
    }
    if REGISTRARS_NAME.contains(&top) && name == "registrar registration expiration date" {
        return Some(PLAIN);
    }
    if OTHERS.iter().any(|other| name.contains(other)) {
        return None;
    }
    if ENDS.iter().any(|part| name.contains(part)) {
        return Some(PLAIN);
    }
    ENDS_PERHAPS.iter().any(|part| name.contains(part)).then_some(VAGUE)
}

/// Recognises a folded name that stands for the begin of the registration.
pub(super) fn is_begin(name: &str) -> bool {
    matches!(
        name,
        "registration" | "created" | "registered" | "creation date" | "created on" | "created date"
    ) || matches!(name, "registered on" | "registered date" | "registration date" | "registration time")
        || matches!(
            name,
            "domain created" | "record created" | "record created on" | "domain name commencement date"
        )
}

/// Recognises a word of status that says that the registration has ended, and waits to be redeemed or deleted: as EPP writes
/// it (RFC 3915), or as RDAP does (RFC 8056).
pub(super) fn is_lapsed(word: &str) -> bool {
    let word = letters(word);
    word.starts_with("redemptionperiod") || word.starts_with("pendingdelete")
}

/// Recognises a word of status that says that the registration is not in use: its date may be long past.
pub(super) fn is_idle(word: &str) -> bool {
    let word = letters(word);
    let idle = ["expired", "hold", "inactive", "suspend", "deactivat", "quarantine", "graceperiod", "cancel"];
    is_lapsed(&word) || idle.iter().any(|part| word.contains(part))
}

fn letters(word: &str) -> String {
    word.chars().filter(|c| c.is_alphabetic()).flat_map(char::to_lowercase).collect()
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
            assert_eq!(end(&folded(name), "zz"), Some(PLAIN), "{name}");
        }
        for name in ["validity", "Renewal date"] {
            assert_eq!(end(&folded(name), "zz"), Some(VAGUE), "{name}");
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
            assert_eq!(end(&folded(name), "zz"), None, "{name}");
        }
        assert_eq!(end("registrar registration expiration date", "hr"), Some(PLAIN));
    }

    #[test]
    fn words_of_status_are_read_in_either_protocols_spelling() {
        for word in [
            "redemption period",
            "redemptionPeriod",
            "Redemption-Period",
            "pending delete",
            "pendingDelete https://icann.example",
        ] {
            assert!(is_lapsed(word) && is_idle(word), "{word}");
        }
        for word in ["active", "ok", "client delete prohibited", "serverDeleteProhibited", ""] {
            assert!(!is_lapsed(word) && !is_idle(word), "{word}");
        }
        assert!(is_idle("clientHold") && !is_lapsed("clientHold"));
    }
}
