//! Updates about incidents and windows for subscribers and owners.

use std::collections::BTreeSet;

use parallax_core::id::{IncidentId, PageId, UpdateId};
use parallax_core::incident::{IncidentStatus, MonitorImpact};
use parallax_core::page::Page;
use parallax_core::time::HOUR;
use serde_json::{Value, json};

use super::super::operator_alert::{OperatorNotification, ProblemDetails};
use super::super::tests::page;
use super::super::{mail, operator_alert};
use super::*;

const AT: Timestamp = Timestamp::from_millis(1_772_357_400_000);

fn incident(kind: IncidentKind, title: &str, body: &str) -> Incident {
    let monitor = MonitorId::from_u128(2);
    let is_window = kind == IncidentKind::Maintenance;
    Incident {
        id: IncidentId::from_u128(1),
        page: PageId::from_u128(3),
        kind,
        title: title.to_owned(),
        status: if is_window { IncidentStatus::Scheduled } else { IncidentStatus::Investigating },
        impact: Impact::Partial,
        started_at: AT,
        ends_at: is_window.then_some(AT + HOUR),
        resolved_at: None,
        automatic: false,
        notify: true,
        remind: Vec::new(),
        series: None,
        postmortem: None,
        affected: vec![MonitorImpact { monitor, impact: None }],
        updates: vec![IncidentUpdate {
            id: UpdateId::from_u128(4),
            status: "investigating".to_owned(),
            body: body.to_owned(),
            created_at: AT,
        }],
        has_begun: false,
        reminded_until: AT,
        created_at: AT,
        edited_at: None,
        planned_at: None,
    }
}

fn news<T>(what: What, incident: &Incident, page: &str, write: impl FnOnce(&IncidentNotification<'_>) -> T) -> T {
    let told =
        IncidentEvent { incident: incident.id, change: what, update: Some(UpdateId::from_u128(4)), notify: true };
    write(&IncidentNotification {
        event: &told,
        page,
        page_url: "https://shop.example",
        incident,
        series: None,
        monitors: &[(MonitorId::from_u128(2), "Checkout".to_owned(), Some(Impact::Major))],
        at: AT,
        zone: chrono_tz::Europe::Berlin,
        language: Language::En,
    })
}

#[test]
fn subscribers_read_what_happened_and_what_was_said() {
    let incident = incident(IncidentKind::Incident, "Slow checkout", "We are **looking** into it.\n\n- soon");
    let written = news(What::Opened, &incident, "Shop", render_update).unwrap();
    assert_eq!(written.event, "incident.created");
    assert_eq!(written.mail.subject, "[Shop] Slow checkout");
    assert_eq!(
        written.mail.text,
        "Incident: Slow checkout (Shop)\n\
         \n\
         We are looking into it.\n\
         \n\
         - soon\n\
         \n\
         Status: Investigating\n\
         Affected: Checkout\n\
         Impact: Partial outage\n\
         Since: 1 Mar 2026, 10:30 (Europe/Berlin, UTC+01:00)\n\
         \n\
         View on the status page: https://shop.example/incidents/inc_00000000000000000000000001\n"
    );
    assert!(written.mail.html.contains("<p>We are <strong>looking</strong> into it.</p>"));
    assert!(written.mail.html.contains("<li>soon</li>"));
}

#[test]
fn a_webhook_gets_the_incident_and_the_update() {
    let incident = incident(IncidentKind::Incident, "Slow", "Looking.");
    let written = news(What::Updated, &incident, "Shop", render_update).unwrap();
    let told: Value = serde_json::from_slice(&written.json).unwrap();
    let names: Vec<&str> = told.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(names, ["event", "page", "pageUrl", "incident", "update", "at"]);
    assert_eq!((&told["event"], &told["at"]), (&json!("incident.updated"), &json!(1_772_357_400_000_i64)));
    assert_eq!(told["incident"]["startedAt"], "2026-03-01T09:30:00.000Z");
    assert_eq!(told["incident"]["monitors"][0]["impact"], "major");
    assert_eq!(told["update"], told["incident"]["updates"][0]);
    assert_eq!(told["update"]["body"], "Looking.");
}

#[test]
fn each_news_has_its_name_and_what_is_nobodys_is_not_told() {
    let window = incident(IncidentKind::Maintenance, "Upgrade", "Soon.");
    let told = |what| {
        let written = news(what, &window, "Shop", render_update)?;
        assert_eq!(written.mail.subject, "[Shop] Upgrade", "all mails share one subject");
        Some((written.event, written.mail.text.lines().next().unwrap_or_default().to_owned()))
    };
    for (what, event, title) in [
        (What::Opened, "incident.created", "Incident"),
        (What::Updated, "maintenance.updated", "Update"),
        (What::Resolved, "incident.resolved", "Resolved"),
        (What::Scheduled, "maintenance.scheduled", "Maintenance scheduled"),
        (What::Reminder(HOUR), "maintenance.reminder", "Maintenance in 1 hour"),
        (What::Started, "maintenance.started", "Maintenance started"),
        (What::Completed, "maintenance.completed", "Maintenance completed"),
    ] {
        assert_eq!(told(what), Some((event, format!("{title}: Upgrade (Shop)"))));
        assert!(EVENTS.contains(&event));
    }
    for what in [What::OwnerReminder(HOUR), What::Changed, What::Deleted] {
        assert_eq!(told(what), None);
    }
    let mail = news(What::OwnerReminder(HOUR), &window, "Shop", |news| owner_reminder(news, HOUR));
    assert_eq!(mail.subject, "No update for 1 h: Upgrade (Shop)");
}

#[test]
fn all_mails_of_an_automatic_incident_have_one_subject() {
    let mut incident = incident(IncidentKind::Incident, "Checkout is down", "Down.");
    incident.automatic = true;
    for title in [
        "Checkout is down",
        "Checkout is flapping",
        "Checkout was down",
        "Checkout was flapping",
        "Checkout ist ausgefallen",
    ] {
        incident.title = title.to_owned();
        let written = news(What::Updated, &incident, "Shop", render_update).unwrap();
        assert_eq!(written.mail.subject, "[Shop] Checkout is down", "{title}");
        assert!(written.mail.text.starts_with(&format!("Update: {title} (Shop)\n")), "{}", written.mail.text);
    }
    incident.title = "Checkout and 1 other are down".to_owned();
    incident.affected.push(MonitorImpact { monitor: MonitorId::from_u128(9), impact: None });
    let subject = |incident: &Incident| news(What::Resolved, incident, "Shop", render_update).unwrap().mail.subject;
    assert_eq!(subject(&incident), "[Shop] Checkout is down");
    incident.title = "The cable again".to_owned();
    assert_eq!(subject(&incident), "[Shop] The cable again", "an edited title");
}

#[test]
fn what_is_written_in_markdown_is_read_without_it_and_tables_are_tables() {
    let table = "See [here](https://a.example):\n\n| Region | State |\n|---|---|\n| Europe | *up* |\n\n```\na  b\n```";
    let incident = incident(IncidentKind::Incident, "Slow", table);
    let mail = news(What::Opened, &incident, "Shop", render_update).unwrap().mail;
    let said = "See here (https://a.example):\n\nRegion  State\n------  -----\nEurope  up\n\n    a  b\n";
    assert!(mail.text.contains(said), "{}", mail.text);
    for part in ["<td style=\"", ">Europe</td>", "<em>up</em>", "<pre style=\"white-space:pre-wrap"] {
        assert!(mail.html.contains(part), "{part}: {}", mail.html);
    }
}

#[test]
fn a_long_incident_is_told_with_its_newest_updates() {
    let mut incident = incident(IncidentKind::Incident, "Slow", "x");
    let last = incident.updates[0].clone();
    incident.updates = (0..200)
        .map(|no| IncidentUpdate { id: UpdateId::from_u128(100 + no), body: no.to_string(), ..last.clone() })
        .chain([last.clone()])
        .collect();
    let written = news(What::Updated, &incident, "Shop", render_update).unwrap();
    let told: Value = serde_json::from_slice(&written.json).unwrap();
    let updates = told["incident"]["updates"].as_array().unwrap();
    assert_eq!((updates.len(), &updates[0]["body"], &updates[1]["body"]), (20, &json!("x"), &json!("199")));
    for update in &mut incident.updates {
        update.body = "x".repeat(10_000);
    }
    let written = news(What::Updated, &incident, "Shop", render_update).unwrap();
    let told: Value = serde_json::from_slice(&written.json).unwrap();
    assert_eq!(told["incident"]["updates"].as_array().unwrap().len(), 3, "limited in bytes too");
}

#[test]
fn hostile_titles_and_bodies_stay_texts() {
    let long = "<".repeat(4_000);
    for text in [
        "a\r\nBcc: eve@evil.example\r\n\r\nx",
        "<script>alert(1)</script><img src=x onerror=alert(1)>",
        "[x](javascript:alert(1)) ![y](https://evil.example/y.png)",
        "\u{202e}gpj.exe \u{0} \u{2066}x",
        "<!--footer--> {{ sheet.title }}",
        &long,
    ] {
        let incident = incident(IncidentKind::Incident, text, text);
        let page = Page { name: text.to_owned(), ..page(Language::En) };
        let written = news(What::Opened, &incident, text, render_update).unwrap();
        let told: Value = serde_json::from_slice(&written.json).unwrap();
        assert_eq!((&told["incident"]["title"], &told["update"]["body"]), (&json!(text), &json!(text)));
        let mails = [
            mail::with_unsubscribe(&written.mail, &page, "https://s.example/u"),
            news(What::OwnerReminder(1), &incident, text, |news| owner_reminder(news, 1)),
            super::super::subscription_confirmation(&page, text, "https://s.example/c"),
            super::super::alerts_confirmation(&page, text, "https://s.example/c"),
            super::super::sign_in(&page, text, "https://s.example/c"),
            super::super::destination_switched_off(
                text,
                text,
                parallax_core::destination::DisableReason::Gone,
                AT,
                chrono_tz::UTC,
            ),
            operator(text),
        ];
        for mail in mails {
            let at = format!("{text:?}: {mail:?}");
            assert!(!mail.subject.contains(char::is_control), "{at}");
            assert!(mail.subject.encode_utf16().count() <= 200, "{at}");
            assert!(!mail.html.contains("<script") && !mail.html.contains("<img"), "{at}");
            assert!(!mail.html.contains("=\"javascript"), "{at}");
            for hidden in ['\0', '\r', '\u{202e}', '\u{2066}'] {
                assert!(!mail.text.contains(hidden) && !mail.html.contains(hidden), "{at}");
            }
        }
    }
}

fn operator(name: &str) -> MailMessage {
    let place = super::super::AgentLabel { name: name.to_owned(), network: name.to_owned() };
    let region = parallax_core::vantage::Region::Asia;
    let matter = ProblemDetails::AgentQuarantined { place, region, found: Some(name.to_owned()) };
    let (json, mail) = operator_alert::render_operator_alert(
        &OperatorNotification { problem: matter, has_ended: false, at: AT },
        "status.example",
    );
    let told: Value = serde_json::from_slice(&json).unwrap();
    assert_eq!((&told["event"], &told["place"]), (&json!("place-quarantined"), &json!(name)));
    mail
}

#[test]
fn the_operator_is_told_of_each_matter_and_of_its_end() {
    use parallax_core::vantage::Region;

    use super::super::AgentLabel;
    let place = AgentLabel { name: "tokyo-1".to_owned(), network: "AS64500".to_owned() };
    let matters = [
        (
            ProblemDetails::AgentQuarantined { place: place.clone(), region: Region::Asia, found: None },
            "agent tokyo-1 is in quarantine",
        ),
        (
            ProblemDetails::AgentQuarantined { place, region: Region::Asia, found: Some("5 of 5".to_owned()) },
            "agent tokyo-1 is in quarantine",
        ),
        (ProblemDetails::OnlyTwoNetworks, "only two networks have working agents"),
        (
            ProblemDetails::Contradicted { agent: "tokyo-1".to_owned(), by: "5 of 5".to_owned() },
            "other agents contradict agent tokyo-1",
        ),
        (ProblemDetails::NoAgentConnected(None), "no agent is connected"),
        (ProblemDetails::NoAgentConnected(Some(Region::Asia)), "no agent in Asia is connected"),
        (ProblemDetails::SingleNetwork(None), "outages can't be confirmed: only one network left"),
        (ProblemDetails::SingleNetwork(Some(Region::Asia)), "Asia has only one network"),
        (ProblemDetails::DiskNearlyFull(64 << 20), "the store is low on space"),
        (
            ProblemDetails::CertificateExpiring { agent: Some("tokyo-1".to_owned()), ends_at: AT },
            "certificate of agent tokyo-1 expires soon",
        ),
        (ProblemDetails::CertificateExpiring { agent: None, ends_at: AT }, "the authority's certificate expires soon"),
        (
            ProblemDetails::AcmeCertificatesExpiring { first: "shop.example".to_owned(), count: 1, ends_at: AT },
            "certificates of hostnames expire soon",
        ),
        (ProblemDetails::CertificateFileExpiring(AT), "the certificate in your files expires soon"),
        (ProblemDetails::TasksCrashed(1), "a task of the coordinator crashed"),
        (ProblemDetails::TasksCrashed(2), "a task of the coordinator crashed"),
        (ProblemDetails::NameResolutionFails, "nearly all names fail to resolve"),
        (ProblemDetails::DeliveriesBlocked, "webhooks and chats are not delivered"),
        (ProblemDetails::AllQuarantined(None), "all agents are in quarantine"),
        (ProblemDetails::AllQuarantined(Some(Region::Asia)), "all agents in Asia are in quarantine"),
        (
            ProblemDetails::UnfitHost { agent: "tokyo-1".to_owned(), faults: "no route".to_owned() },
            "the host of agent tokyo-1 is not fit to run checks",
        ),
    ];
    // Receivers know problems by these names.
    let names: BTreeSet<&str> = matters.iter().map(|(problem, _)| problem.event_name()).collect();
    let expected = [
        "certificate-ending",
        "deliveries-blocked",
        "host-unfit",
        "names-failing",
        "part-broken",
        "place-contradicted",
        "place-quarantined",
        "region-quarantined",
        "region-stale",
        "second-network-missing",
        "store-low",
        "third-network-missing",
    ];
    assert!(names.iter().eq(&expected), "{names:?}");
    for (matter, title) in matters {
        for ended in [false, true] {
            let (json, mail) = operator_alert::render_operator_alert(
                &OperatorNotification { problem: matter.clone(), has_ended: ended, at: AT },
                "status.example",
            );
            let told: Value = serde_json::from_slice(&json).unwrap();
            assert_eq!((&told["event"], &told["ended"]), (&json!(matter.event_name()), &json!(ended)));
            assert_eq!(told["at"], AT.as_millis());
            let over = if ended { format!("Resolved: {title}") } else { title.to_owned() };
            let subject = format!("[status.example] {over}");
            assert_eq!(mail.subject.to_lowercase(), subject.to_lowercase());
            assert_eq!(told["installation"], "status.example");
            assert!(mail.text.contains("Parallax at status.example"), "{}", mail.text);
            assert!(mail.text.contains(told["message"].as_str().unwrap()), "{}", mail.text);
            assert!(mail.text.contains("2026-03-01 09:30:00 (UTC)"), "{}", mail.text);
        }
    }
}

#[test]
fn a_webhooks_news_has_the_address_where_it_leaves_and_is_else_as_it_was() {
    let incident = incident(IncidentKind::Incident, "Slow", "x");
    let written = news(What::Opened, &incident, "Shop", |news| render_update(news).unwrap());
    let url = "https://shop.example/unsubscribe?t=\"x";
    let with = with_unsubscribe_url(&written.json, url);
    let mut with: Value = serde_json::from_slice(&with).unwrap();
    assert_eq!(with.as_object_mut().unwrap().remove("unsubscribeUrl"), Some(json!(url)));
    assert_eq!(with, serde_json::from_slice::<Value>(&written.json).unwrap());
}
