//! Each mail to visitors and subscribers is entirely in the page's language.

use parallax_core::delivery::MailMessage;
use parallax_core::id::{IncidentId, PageId, UpdateId};
use parallax_core::incident::{
    Impact, Incident, IncidentChange, IncidentEvent, IncidentKind, IncidentStatus, IncidentUpdate,
};
use parallax_core::time::{DAY, HOUR, MINUTE};

use super::*;

const AT: Timestamp = Timestamp::from_millis(1_772_357_400_000);
const URL: &str = "https://0.example/1?2";

/// An incident or window whose own texts are numbers, which belong to no language.
fn incident(kind: IncidentKind, status: IncidentStatus, impact: Impact) -> Incident {
    let update =
        IncidentUpdate { id: UpdateId::from_u128(4), status: String::new(), body: "345".to_owned(), created_at: AT };
    Incident {
        id: IncidentId::from_u128(1),
        page: PageId::from_u128(1),
        kind,
        title: "678".to_owned(),
        status,
        impact,
        started_at: AT,
        ends_at: (kind == IncidentKind::Maintenance).then_some(AT + HOUR),
        resolved_at: status.is_closed().then_some(AT + 30 * MINUTE),
        automatic: false,
        notify: true,
        remind: Vec::new(),
        series: None,
        postmortem: None,
        affected: Vec::new(),
        updates: vec![update],
        has_begun: true,
        reminded_until: AT,
        created_at: AT,
        edited_at: None,
        planned_at: None,
    }
}

fn update_mail(change: IncidentChange, incident: &Incident, language: Language) -> MailMessage {
    let event = IncidentEvent { incident: incident.id, change, update: Some(UpdateId::from_u128(4)), notify: true };
    let rendered = incident_update::render_update(&IncidentNotification {
        event: &event,
        page: "910",
        page_url: URL,
        incident,
        series: None,
        monitors: &[1, 2].map(|id| (parallax_core::id::MonitorId::from_u128(id), "11".to_owned(), None)),
        at: AT,
        zone: chrono_tz::UTC,
        language,
    });
    rendered.unwrap().mail
}

/// Every mail that a visitor or subscriber can receive, with no words except those of the catalogue.
fn all_mails(language: Language) -> Vec<MailMessage> {
    let mut page = page(language);
    page.name = "910".to_owned();
    let mut mails = vec![
        subscription_confirmation(&page, URL, URL),
        alerts_confirmation(&page, URL, URL),
        sign_in(&page, URL, URL),
    ];
    for (status, impact) in IncidentStatus::OF_INCIDENT.into_iter().zip(Impact::ALL) {
        let incident = incident(IncidentKind::Incident, status, impact);
        for change in [IncidentChange::Opened, IncidentChange::Updated, IncidentChange::Resolved] {
            mails.push(update_mail(change, &incident, language));
        }
    }
    for status in [IncidentStatus::Scheduled, IncidentStatus::Completed] {
        let window = incident(IncidentKind::Maintenance, status, Impact::None);
        let reminders = [DAY, 90 * MINUTE, 30 * MINUTE].map(IncidentChange::Reminder);
        let others =
            [IncidentChange::Scheduled, IncidentChange::Updated, IncidentChange::Started, IncidentChange::Completed];
        mails.extend(reminders.into_iter().chain(others).map(|change| update_mail(change, &window, language)));
    }
    mails.iter().map(|mail| mail::with_unsubscribe(mail, &page, URL)).collect()
}

/// Mails to recipients who have not agreed to anything yet.
fn confirmation_mails(page: &parallax_core::page::Page) -> [MailMessage; 3] {
    [subscription_confirmation(page, URL, URL), alerts_confirmation(page, URL, URL), sign_in(page, URL, URL)]
}

#[test]
fn a_page_name_that_reads_like_a_message_is_left_out_of_confirmation_mails() {
    for language in Language::ALL {
        for name in ["Your account is locked, call 0800 123456", "Locked: pay at evil.example", "Locked！"] {
            let page = parallax_core::page::Page { name: name.to_owned(), ..page(language) };
            for mail in confirmation_mails(&page) {
                for text in [&mail.subject, &mail.text, &mail.html] {
                    let lower = text.to_lowercase();
                    assert!(!lower.contains("locked") && !lower.contains("evil"), "{language:?}: {text}");
                }
                assert!(mail.subject.contains(URL) && !mail.text.contains(&format!("{URL} (")), "{mail:?}");
            }
        }
        let page = parallax_core::page::Page { name: "Acme Status".to_owned(), ..page(language) };
        for mail in confirmation_mails(&page) {
            assert!(mail.subject.contains("Acme Status"), "{language:?}: {}", mail.subject);
            assert!(mail.text.contains(&format!("Acme Status ({URL})")), "{language:?}: {}", mail.text);
        }
    }
}

/// Returns the words of a text, without URLs.
fn words_of(text: &str) -> Vec<String> {
    let text = text.replace(URL, " ").replace("/incidents/inc_00000000000000000000000001", " ");
    let words = text.split(|character: char| !character.is_alphabetic()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

#[test]
fn mails_in_other_languages_have_no_english_words() {
    // Words that are the same in both languages, and the zone's name.
    let shared = |language| match language {
        Language::De => &["browser", "in", "link", "mail", "status", "utc"][..],
        Language::Es => &["a", "ignore", "mar", "utc"][..],
        Language::Fr => &["a", "impact", "incident", "incidents", "mail", "maintenance", "minutes", "page", "utc"][..],
        Language::Pt => &["a", "ignore", "link", "mail", "mar", "utc"][..],
        Language::En | Language::Ja => &["utc"][..],
    };
    let english: std::collections::BTreeSet<String> =
        all_mails(Language::En).iter().flat_map(|mail| words_of(&mail.text)).collect();
    assert!(english.contains("unsubscribe") && english.contains("mar"), "{english:?}");
    for language in Language::ALL.into_iter().skip(1) {
        for mail in all_mails(language) {
            assert!(mail.html.contains(&format!("<html lang=\"{}\">", language.tag())), "{}", mail.html);
            for word in words_of(&format!("{}\n{}", mail.subject, mail.text)) {
                let is_shared = shared(language).contains(&word.as_str());
                assert!(is_shared || !english.contains(&word), "{language:?}: {word} in {}", mail.text);
            }
        }
    }
}

#[test]
fn mails_are_written_in_the_readers_language() {
    let incident = incident(IncidentKind::Incident, IncidentStatus::Resolved, Impact::Partial);
    let german = update_mail(IncidentChange::Resolved, &incident, Language::De);
    assert_eq!(german.subject, "[910] 678");
    assert_eq!(
        german.text,
        "Behoben: 678 (910)\n\
         \n\
         345\n\
         \n\
         Status: Behoben\n\
         Betroffen: 11, 11\n\
         Auswirkung: Teilausfall\n\
         Seit: 1. März 2026, 09:30 (UTC)\n\
         Beendet: 1. März 2026, 10:00 (UTC)\n\
         \n\
         Auf der Statusseite ansehen: https://0.example/1?2/incidents/inc_00000000000000000000000001\n"
    );
    let heading = |language| {
        let text = update_mail(IncidentChange::Reminder(90 * MINUTE), &incident, language).text;
        text.lines().next().unwrap_or_default().to_owned()
    };
    assert_eq!(
        [Language::De, Language::Fr, Language::Ja].map(heading),
        [
            "Noch 1 Stunde 30 Minuten bis zur Wartung: 678 (910)",
            "Maintenance dans 1 heure 30 minutes : 678 (910)",
            "【メンテナンスまであと1時間30分】678（910）",
        ]
    );
}
