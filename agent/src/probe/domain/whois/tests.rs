//! Tests of WHOIS responses: each registry's form under `tests/fixtures/whois.txt`, and invalid ones.

use super::*;

/// 13 August 2027.
const DAY: i64 = 1_818_115_200_000;
/// 1 January 2027.
const NOW: i64 = 1_798_761_600_000;

/// Responses by registry: `=== domain end`, then the response.
const FORMS: &str = include_str!("../../../../tests/fixtures/whois.txt");

#[test]
fn every_registrys_form_is_read() {
    let mut tops = std::collections::BTreeSet::new();
    let mut wrong = Vec::new();
    for form in FORMS.split("=== ").skip(1) {
        let (head, answer) = form.split_once('\n').unwrap();
        let (domain, wanted) = head.split_once(' ').unwrap();
        let read = read(answer, domain).map(|registration| registration.map(|one| one.plausible_expiry(NOW)));
        let found = match read {
            Ok(Some(Ok(end))) => {
                chrono::DateTime::from_timestamp_millis(end).unwrap().format("%Y-%m-%dT%H:%M:%SZ").to_string()
            }
            Ok(Some(Err(why))) | Err(why) => why,
            Ok(None) => "absent".to_owned(),
        };
        if found != wanted {
            wrong.push(format!("{domain}: {found} and not {wanted}"));
        }
        tops.insert(top_level(domain).to_owned());
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(tops.len() >= 25, "{} registries", tops.len());
}

#[test]
fn the_expiry_is_found_under_its_many_labels() {
    for line in [
        "   Registry Expiry Date: 2027-08-13T00:00:00Z",
        "expires:          2027-08-13",
        "paid-till:     2027-08-13T00:00:00Z",
        "Expiry date:  13-Aug-2027",
        "expires............: 13.8.2027 00:00:00",
        "[Expires on] 2027/08/13",
        "Renewal date:   2027.08.13",
        "expire: 13.08.2027",
        "Expiration Date: 2027-08-13 08:00:00 (UTC+8)",
        "Valid Until:                  2027-08-13",
        "Renewal date:\n    Friday 13th Aug 2027",
    ] {
        let text = format!("\u{feff}% Terms apply\r\ndomain: EXAMPLE.zz\r\n{line}\r\n");
        let read = read(&text, "example.zz").unwrap().unwrap();
        assert_eq!((read.plausible_expiry(NOW), read.is_lapsed), (Ok(DAY), false), "{line}");
    }
    let text = "Domain: example.zz\nExpiry Date: 2027-08-13\nDomain Status: redemptionPeriod https://icann.example\n";
    assert!(read(text, "example.zz").unwrap().unwrap().is_lapsed);
    // Of several labels the clearest counts, and the registrar's own date never does.
    let text = "Domain: example.zz\nRenewal date: 2026-01-01\nRegistrar Registration Expiration Date: 2029-01-01\n\
                Expiry date: never\nexpires: 2027-08-13\n";
    assert_eq!(read(text, "example.zz").unwrap().unwrap().plausible_expiry(NOW), Ok(DAY));
    let text = "Domain: example.zz\nRegistrar Registration Expiration Date: 2029-01-01\n";
    assert_eq!(read(text, "example.zz"), Err(NO_DATE.to_owned()));
}

#[test]
fn only_a_clear_phrase_means_an_unregistered_domain() {
    for text in [
        "No match for \"EXAMPLE.ZZ\".\n",
        "% No entries found\n",
        ">>> Domain not found\n",
        "%ERROR:103: Domain is not registered\n",
        "% No data was found to match the request criteria.\n",
        "Domain: a\nStatus:  free\n",
        "Object_Not_Found\n",
    ] {
        assert_eq!(read(text, "example.zz"), Ok(None), "{text}");
    }
    for text in [
        "",
        "<html>404 not found</html>",
        "Query limit exceeded. Not found.\n",
        "Domain: example.zz\nStatus: connect\n",
        "Domain: other.zz\nExpiry date: 2027-08-13\n",
        "Domain: example.zz\nExpiry date: soon\n",
        "Domain: example.zz\nExpiry date: 08/13/27\n",
        "Domain: example.zz\nExpiry date: 05/08/2027\n",
        "Domain: example.zz\nNOTICE: The expiration date displayed in this record is 2027-08-13\n",
    ] {
        assert!(read(text, "example.zz").is_err(), "{text}");
    }
}

#[test]
fn the_root_names_a_server() {
    let text = "% IANA\ndomain:       ZZ\nwhois:        whois.nic.zz\n\nstatus:       ACTIVE\n";
    let server = fields(text).find(|(name, _)| name == "whois").map(|(_, host)| host);
    assert_eq!(server, Some("whois.nic.zz"));
    // A country without one.
    assert!(fields("domain: ZZ\nwhois:\n\nstatus: ACTIVE\n").all(|(name, _)| name != "whois"));
    assert_eq!(query_text("example.jp"), "example.jp/e");
}
