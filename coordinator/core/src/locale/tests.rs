//! Every catalogue is complete; numbers, dates and durations are formatted by language.

use std::collections::BTreeSet;

use super::*;
use crate::observation::{CheckPhase, Failure};

fn placeholders(text: &str) -> BTreeSet<&str> {
    text.split('{').skip(1).filter_map(|part| part.split_once('}')).map(|(number, _)| number).collect()
}

fn en() -> &'static Locale {
    Locale::of(Language::En)
}

#[test]
fn every_catalogue_has_every_text_with_the_same_placeholders() {
    for language in Language::ALL {
        let theirs = Locale::of(language).entries();
        for ((name, ours), (_, theirs)) in en().entries().into_iter().zip(&theirs) {
            // Japanese has no separator between the parts of a duration.
            assert!(!theirs.is_empty() || name.starts_with("length_"), "{language:?} {name}");
            assert_eq!(placeholders(ours), placeholders(theirs), "{language:?} {name}");
            assert!(!theirs.contains(['<', '>']), "{language:?} {name}: texts contain no markup");
        }
        let same = en().entries().iter().zip(&theirs).filter(|(ours, theirs)| ours.1 == theirs.1).count();
        assert!(language == Language::En || same * 4 < theirs.len(), "{language:?}: {same}");
    }
}

#[test]
fn numbers_go_with_their_plural_rule() {
    let days = |language: Language, number: i32| {
        let locale = Locale::of(language);
        locale.plural(number, locale.one_day, locale.days)
    };
    for (language, number, expected) in [
        (Language::En, 0, "0 days"),
        (Language::En, 1, "1 day"),
        (Language::En, -1, "-1 days"),
        (Language::Fr, 0, "0 jour"),
        (Language::Fr, 2, "2 jours"),
        (Language::De, 1, "1 Tag"),
        (Language::Ja, 1, "1日"),
    ] {
        assert_eq!(days(language, number), expected);
    }
}

#[test]
fn dates_and_numbers_have_the_languages_form() {
    let date = NaiveDate::from_ymd_opt(2026, 3, 7).unwrap();
    for (language, moment, weekday, full, month, number) in [
        (Language::En, "7 Mar 2026, 9:30", "Sat, 7 Mar 2026, 9:30", "7 Mar 2026", "March 2026", "99.9"),
        (Language::De, "7. März 2026, 9:30", "Sa, 7. März 2026, 9:30", "7. März 2026", "März 2026", "99,9"),
        (Language::Es, "7 mar 2026, 9:30", "sáb, 7 mar 2026, 9:30", "7 mar 2026", "marzo de 2026", "99,9"),
        (Language::Fr, "7 mars 2026, 9:30", "sam. 7 mars 2026, 9:30", "7 mars 2026", "mars 2026", "99,9"),
        (Language::Pt, "7 mar. 2026, 9:30", "sáb, 7 mar. 2026, 9:30", "7 mar. 2026", "março de 2026", "99,9"),
        (Language::Ja, "2026年3月7日 9:30", "2026年3月7日(土) 9:30", "2026年3月7日", "2026年3月", "99.9"),
    ] {
        let locale = Locale::of(language);
        assert_eq!((locale.date_time(date, "9:30").as_str(), locale.full_day(date).as_str()), (moment, full));
        // It was a Saturday.
        assert_eq!(locale.weekday_time(date, "9:30"), weekday);
        assert_eq!((locale.month(date).as_str(), locale.number("99.9").as_str()), (month, number));
    }
}

#[test]
fn durations_are_formatted_in_their_two_largest_units() {
    for (millis, expected, in_sentence) in [
        (-5, "a moment", "less than a minute"),
        (0, "a moment", "less than a minute"),
        (1_500, "1 second", "less than a minute"),
        (59_999, "59 seconds", "less than a minute"),
        (MINUTE, "1 minute", "1 minute"),
        (14 * MINUTE + 59 * SECOND, "14 minutes", "14 minutes"),
        (HOUR, "1 hour", "1 hour"),
        (2 * HOUR + 5 * MINUTE, "2 hours 5 minutes", "2 hours and 5 minutes"),
        (3 * DAY + 4 * HOUR + 5 * MINUTE, "3 days 4 hours", "3 days and 4 hours"),
        (3 * DAY + 5 * MINUTE, "3 days", "3 days"),
        (40 * DAY, "40 days", "40 days"),
    ] {
        assert_eq!(
            (en().duration(millis), en().duration_in_sentence(millis)),
            (expected.to_owned(), in_sentence.to_owned())
        );
    }
    let in_sentence = |language| Locale::of(language).duration_in_sentence(2 * HOUR + 5 * MINUTE);
    assert_eq!(
        [Language::De, Language::Ja].map(in_sentence),
        ["2 Stunden und 5 Minuten", "2時間5分"].map(str::to_owned)
    );
}

#[test]
fn lists_are_read_aloud() {
    for (names, expected) in [(&[][..], ""), (&["a"], "a"), (&["a", "b"], "a and b"), (&["a", "b", "c"], "a, b and c")]
    {
        assert_eq!(en().list(names), expected);
    }
    let all = Locale::of(Language::De).regions([Region::Asia, Region::Europe].into_iter().collect());
    assert_eq!(all, "Europa und Asien");
}

#[test]
fn the_api_says_why_a_check_failed_in_english() {
    for (failure, expected) in [
        (Failure::Timeout(CheckPhase::Dns), "timed out resolving the name"),
        (Failure::UnexpectedStatus(503), "unexpected status 503"),
        (Failure::CertificateExpiring(20), "certificate expires in 20 days"),
        (Failure::DomainExpiring(1), "domain expires in 1 day"),
        (Failure::JobFailed(Some(3)), "the job ended with exit code 3"),
        (Failure::VendorOutage("{0} *down*".to_owned()), "{0} *down*"),
        (Failure::TlsFailed("{0}".to_owned()), "TLS failed: {0}"),
    ] {
        assert_eq!(failure.to_string(), expected);
    }
    let german = Locale::of(Language::De);
    assert_eq!(german.failure_text(&Failure::CertificateExpiring(1)), "Zertifikat läuft in 1 Tag ab");
    assert_eq!(german.failure_text(&Failure::UnexpectedStatus(503)), "unerwarteter Status 503");
}

#[test]
fn what_is_put_in_is_no_pattern() {
    assert_eq!(fill("{0} and {1}", &["{1}", "b"]), "{1} and b");
    assert_eq!((fill("{2}", &[]), fill("a {", &[])), (String::new(), "a ".to_owned()));
}
