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

fn with_notification<T>(
    change: IncidentChange,
    incident: &Incident,
    page: &str,
    write: impl FnOnce(&IncidentNotification<'_>) -> T,
) -> T {
    let event = IncidentEvent { incident: incident.id, change, update: Some(UpdateId::from_u128(4)), notify: true };
    write(&IncidentNotification {
        event: &event,
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
fn an_update_mail_has_the_event_and_the_posted_text() {
    let incident = incident(IncidentKind::Incident, "Slow checkout", "We are **looking** into it.\n\n- soon");
    let rendered = with_notification(IncidentChange::Opened, &incident, "Shop", render_update).unwrap();
    assert_eq!(rendered.event, "incident.created");
    assert_eq!(rendered.mail.subject, "[Shop] Slow checkout");
    assert_eq!(
        rendered.mail.text,
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
    assert!(rendered.mail.html.contains("<p>We are <strong>looking</strong> into it.</p>"));
    assert!(rendered.mail.html.contains("<li>soon</li>"));
}

#[test]
fn a_webhook_gets_the_incident_and_the_update() {
    let incident = incident(IncidentKind::Incident, "Slow", "Looking.");
    let rendered = with_notification(IncidentChange::Updated, &incident, "Shop", render_update).unwrap();
    let payload: Value = serde_json::from_slice(&rendered.json).unwrap();
    let names: Vec<&str> = payload.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(names, ["event", "page", "pageUrl", "incident", "update", "at"]);
    assert_eq!((&payload["event"], &payload["at"]), (&json!("incident.updated"), &json!(1_772_357_400_000_i64)));
    assert_eq!(payload["incident"]["startedAt"], "2026-03-01T09:30:00.000Z");
    assert_eq!(payload["incident"]["monitors"][0]["impact"], "major");
    assert_eq!(payload["update"], payload["incident"]["updates"][0]);
    assert_eq!(payload["update"]["body"], "Looking.");
}

#[test]
fn each_event_has_its_name_and_internal_changes_are_not_sent() {
    let window = incident(IncidentKind::Maintenance, "Upgrade", "Soon.");
    let event_and_title = |change| {
        let rendered = with_notification(change, &window, "Shop", render_update)?;
        assert_eq!(rendered.mail.subject, "[Shop] Upgrade", "all mails share one subject");
        Some((rendered.event, rendered.mail.text.lines().next().unwrap_or_default().to_owned()))
    };
    for (change, event, title) in [
        (IncidentChange::Opened, "incident.created", "Incident"),
        (IncidentChange::Updated, "maintenance.updated", "Update"),
        (IncidentChange::Resolved, "incident.resolved", "Resolved"),
        (IncidentChange::Scheduled, "maintenance.scheduled", "Maintenance scheduled"),
        (IncidentChange::Reminder(HOUR), "maintenance.reminder", "Maintenance in 1 hour"),
        (IncidentChange::Started, "maintenance.started", "Maintenance started"),
        (IncidentChange::Completed, "maintenance.completed", "Maintenance completed"),
    ] {
        assert_eq!(event_and_title(change), Some((event, format!("{title}: Upgrade (Shop)"))));
        assert!(EVENTS.contains(&event));
    }
    for change in [IncidentChange::OwnerReminder(HOUR), IncidentChange::Changed, IncidentChange::Deleted] {
        assert_eq!(event_and_title(change), None);
    }
    let mail = with_notification(IncidentChange::OwnerReminder(HOUR), &window, "Shop", |notification| {
        owner_reminder(notification, HOUR)
    });
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
        let rendered = with_notification(IncidentChange::Updated, &incident, "Shop", render_update).unwrap();
        assert_eq!(rendered.mail.subject, "[Shop] Checkout is down", "{title}");
        assert!(rendered.mail.text.starts_with(&format!("Update: {title} (Shop)\n")), "{}", rendered.mail.text);
    }
    incident.title = "Checkout and 1 other are down".to_owned();
    incident.affected.push(MonitorImpact { monitor: MonitorId::from_u128(9), impact: None });
    let subject = |incident: &Incident| {
        with_notification(IncidentChange::Resolved, incident, "Shop", render_update).unwrap().mail.subject
    };
    assert_eq!(subject(&incident), "[Shop] Checkout is down");
    incident.title = "The cable again".to_owned();
    assert_eq!(subject(&incident), "[Shop] The cable again", "an edited title");
}

#[test]
fn markdown_becomes_plain_text_and_html_with_tables() {
    let table = "See [here](https://a.example):\n\n| Region | State |\n|---|---|\n| Europe | *up* |\n\n```\na  b\n```";
    let incident = incident(IncidentKind::Incident, "Slow", table);
    let mail = with_notification(IncidentChange::Opened, &incident, "Shop", render_update).unwrap().mail;
    let expected = "See here (https://a.example):\n\nRegion  State\n------  -----\nEurope  up\n\n    a  b\n";
    assert!(mail.text.contains(expected), "{}", mail.text);
    for part in ["<td style=\"", ">Europe</td>", "<em>up</em>", "<pre style=\"white-space:pre-wrap"] {
        assert!(mail.html.contains(part), "{part}: {}", mail.html);
    }
}

#[test]
fn the_body_of_a_long_incident_has_only_its_newest_updates() {
    let mut incident = incident(IncidentKind::Incident, "Slow", "x");
    let last = incident.updates[0].clone();
    incident.updates = (0..200)
        .map(|number| IncidentUpdate {
            id: UpdateId::from_u128(100 + number),
            body: number.to_string(),
            ..last.clone()
        })
        .chain([last.clone()])
        .collect();
    let rendered = with_notification(IncidentChange::Updated, &incident, "Shop", render_update).unwrap();
    let payload: Value = serde_json::from_slice(&rendered.json).unwrap();
    let updates = payload["incident"]["updates"].as_array().unwrap();
    assert_eq!((updates.len(), &updates[0]["body"], &updates[1]["body"]), (20, &json!("x"), &json!("199")));
    for update in &mut incident.updates {
        update.body = "x".repeat(10_000);
    }
    let rendered = with_notification(IncidentChange::Updated, &incident, "Shop", render_update).unwrap();
    let payload: Value = serde_json::from_slice(&rendered.json).unwrap();
    assert_eq!(payload["incident"]["updates"].as_array().unwrap().len(), 3, "limited in bytes too");
}

#[test]
fn hostile_titles_and_bodies_add_no_markup() {
    let long = "<".repeat(4_000);
    for text in [
        "a\r\nBcc: eve@evil.example\r\n\r\nx",
        "<script>alert(1)</script><img src=x onerror=alert(1)>",
        "[x](javascript:alert(1)) ![y](https://evil.example/y.png)",
        "\u{202e}gpj.exe \u{0} \u{2066}x",
        "<!--footer--> {{ content.title }}",
        &long,
    ] {
        let incident = incident(IncidentKind::Incident, text, text);
        let page = Page { name: text.to_owned(), ..page(Language::En) };
        let rendered = with_notification(IncidentChange::Opened, &incident, text, render_update).unwrap();
        let payload: Value = serde_json::from_slice(&rendered.json).unwrap();
        assert_eq!((&payload["incident"]["title"], &payload["update"]["body"]), (&json!(text), &json!(text)));
        let mails = [
            mail::with_unsubscribe(&rendered.mail, &page, "https://s.example/u"),
            with_notification(IncidentChange::OwnerReminder(1), &incident, text, |notification| {
                owner_reminder(notification, 1)
            }),
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
    let agent = super::super::AgentLabel { name: name.to_owned(), network: name.to_owned() };
    let region = parallax_core::vantage::Region::Asia;
    let problem = ProblemDetails::AgentQuarantined { agent, region, contradicted_by: Some(name.to_owned()) };
    let (json, mail) = operator_alert::render_operator_alert(
        &OperatorNotification { problem, has_ended: false, at: AT },
        "status.example",
    );
    let payload: Value = serde_json::from_slice(&json).unwrap();
    assert_eq!((&payload["event"], &payload["place"]), (&json!("place-quarantined"), &json!(name)));
    mail
}

#[test]
fn each_problem_has_an_operator_alert_for_its_start_and_its_end() {
    use parallax_core::vantage::Region;

    use super::super::AgentLabel;
    let agent = AgentLabel { name: "tokyo-1".to_owned(), network: "AS64500".to_owned() };
    let problems = [
        (
            ProblemDetails::AgentQuarantined { agent: agent.clone(), region: Region::Asia, contradicted_by: None },
            "agent tokyo-1 is in quarantine",
        ),
        (
            ProblemDetails::AgentQuarantined {
                agent,
                region: Region::Asia,
                contradicted_by: Some("5 of 5".to_owned()),
            },
            "agent tokyo-1 is in quarantine",
        ),
        (ProblemDetails::OnlyTwoNetworks, "only two networks have working agents"),
        (
            ProblemDetails::Contradicted { agent: "tokyo-1".to_owned(), by: "5 of 5".to_owned() },
            "other agents contradict agent tokyo-1",
        ),
        (ProblemDetails::NoAgentConnected(None), "no agent is connected"),
        (ProblemDetails::NoAgentConnected(Some(Region::Asia)), "no agent in Asia is connected"),
        (ProblemDetails::SingleNetwork(None), "no second network can confirm outages"),
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
    let names: BTreeSet<&str> = problems.iter().map(|(problem, _)| problem.event_name()).collect();
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
    for (problem, title) in problems {
        for has_ended in [false, true] {
            let (json, mail) = operator_alert::render_operator_alert(
                &OperatorNotification { problem: problem.clone(), has_ended, at: AT },
                "status.example",
            );
            let payload: Value = serde_json::from_slice(&json).unwrap();
            assert_eq!((&payload["event"], &payload["ended"]), (&json!(problem.event_name()), &json!(has_ended)));
            assert_eq!(payload["at"], AT.as_millis());
            let expected_title = if has_ended { format!("Resolved: {title}") } else { title.to_owned() };
            let subject = format!("[status.example] {expected_title}");
            assert_eq!(mail.subject.to_lowercase(), subject.to_lowercase());
            assert_eq!(payload["installation"], "status.example");
            assert!(mail.text.contains("Parallax at status.example"), "{}", mail.text);
            assert!(mail.text.contains(payload["message"].as_str().unwrap()), "{}", mail.text);
            assert!(mail.text.contains("2026-03-01 09:30:00 (UTC)"), "{}", mail.text);
        }
    }
}

#[test]
fn the_unsubscribe_url_is_added_and_nothing_else_changes() {
    let incident = incident(IncidentKind::Incident, "Slow", "x");
    let rendered = with_notification(IncidentChange::Opened, &incident, "Shop", |notification| {
        render_update(notification).unwrap()
    });
    let url = "https://shop.example/unsubscribe?t=\"x";
    let body = with_unsubscribe_url(&rendered.json, url);
    let mut body: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(body.as_object_mut().unwrap().remove("unsubscribeUrl"), Some(json!(url)));
    assert_eq!(body, serde_json::from_slice::<Value>(&rendered.json).unwrap());
}
