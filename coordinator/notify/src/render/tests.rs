//! Alerts on every channel: their texts, and that user-supplied text stays text.

use parallax_core::event::{MonitorStatus, ProbeReason, RoundReport};
use parallax_core::flapping::Aspect;
use parallax_core::id::{AccountId, PageId};
use parallax_core::observation::{Failure, Measurements, ProbeOutcome, RoundOutcome};
use parallax_core::page::Page;
use parallax_core::page::branding::Language;
use parallax_core::vantage::{Region, RegionSet};
use serde_json::json;

use super::*;

mod evidence_links;
mod hostile;
mod languages;

/// A page in a language.
pub(super) fn page(language: Language) -> Page {
    let (id, account) = (PageId::from_u128(1), AccountId::from_u128(1));
    Page { language, ..Page::blank(id, account, "shop".to_owned(), Timestamp::from_millis(0)) }
}

/// A page with a name.
fn named(name: &str) -> Page {
    Page { name: name.to_owned(), ..page(Language::En) }
}

/// A page, a monitor and a failure reason.
#[derive(Debug, Clone, Copy)]
pub(super) struct AlertFixture<'a> {
    pub(super) page: &'a str,
    pub(super) monitor: &'a str,
    pub(super) reason: Option<&'a str>,
    pub(super) is_test: bool,
    pub(super) evidence_url: Option<&'a str>,
}

impl Default for AlertFixture<'_> {
    fn default() -> Self {
        Self { page: "Shop", monitor: "Checkout", reason: None, is_test: false, evidence_url: None }
    }
}

impl AlertFixture<'_> {
    /// Passes an alert of this kind to `write`.
    pub(super) fn with_alert<T>(&self, kind: AlertKind, write: impl FnOnce(&Alert<'_>) -> T) -> T {
        let subject = AlertSubject {
            page_id: "pg_0000000000000000000000000a".parse().unwrap(),
            page: self.page.to_owned(),
            page_url: "https://shop.example".to_owned(),
            monitor_id: "mon_0000000000000000000000000b".parse().unwrap(),
            monitor: self.monitor.to_owned(),
            url: Some("https://shop.example/cart".to_owned()),
        };
        let reason = match self.reason {
            Some(text) => Failure::Other(text.to_owned()),
            None => Failure::UnexpectedStatus(503),
        };
        let change = StatusChange {
            from: MonitorStatus::Up,
            to: MonitorStatus::Down,
            alert: None,
            since: Timestamp::from_millis(1_000),
            down_since: Some(Timestamp::from_millis(1_000)),
            reason: Some(reason.clone()),
            down_from: Some(RegionSet::only(Region::Asia)),
            latency_ms: Some(1_500),
            threshold_ms: Some(900),
            duration_ms: Some(60_000),
            evidence: rounds(&reason),
            flapping: None,
        };
        let label = |name: &str, network: &str| AgentLabel { name: name.to_owned(), network: network.to_owned() };
        let labels = AgentLabels::from([
            (VantageNo(0), label("tokyo-1", "AS64500")),
            (VantageNo(1), label("tokyo-2", "AS64501")),
            (VantageNo(2), label("paris-1", "AS64502")),
        ]);
        write(&Alert {
            kind,
            subject: &subject,
            change: &change,
            at: Timestamp::from_millis(31_000),
            zone: chrono_tz::Europe::Berlin,
            agents: &labels,
            evidence_url: self.evidence_url,
            is_test: self.is_test,
        })
    }

    fn json(&self, channel: ChannelKind, kind: AlertKind) -> Value {
        match self.with_alert(kind, |alert| render_alert(channel, alert)) {
            DeliveryMessage::Json(bytes) => serde_json::from_slice(&bytes).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    fn mail(&self, kind: AlertKind) -> parallax_core::delivery::MailMessage {
        self.with_alert(kind, mail::alert_mail)
    }
}

fn rounds(reason: &Failure) -> Vec<RoundReport> {
    let failed = || {
        let facts = Measurements {
            status_code: Some(503),
            latency_ms: Some(41),
            address: Some([192, 0, 2, 7].into()),
            ..Measurements::default()
        };
        ProbeOutcome::Failed(facts, reason.clone())
    };
    let round = |region, reason, started, first, second| RoundReport {
        region,
        reason,
        round: Some(7),
        started: Timestamp::from_millis(started),
        round_outcome: RoundOutcome::Failed,
        first_vantage: VantageNo(first),
        first_outcome: failed(),
        second,
        third: None,
    };
    let passed = ProbeOutcome::Passed(Measurements { latency_ms: Some(88), ..Measurements::default() });
    vec![
        round(Region::Asia, ProbeReason::Second, 6_000, 9, Some((VantageNo(1), failed()))),
        round(Region::Asia, ProbeReason::Scheduled, 1_000, 0, Some((VantageNo(1), failed()))),
        RoundReport {
            round_outcome: RoundOutcome::Passed,
            first_outcome: passed,
            ..round(Region::Europe, ProbeReason::Sweep, 6_100, 2, None)
        },
    ]
}

#[test]
fn evidence_is_one_sentence_per_region() {
    let sentences = AlertFixture::default().with_alert(AlertKind::WentDown, |alert| {
        let mut rounds = alert.change.evidence.clone();
        alert_evidence::sentences(&rounds, alert.agents)
            .into_iter()
            .chain({
                // The same agent again, and a second network that passes.
                rounds[0].first_vantage = VantageNo(0);
                rounds[2].second = Some((VantageNo(0), rounds[0].first_outcome.clone()));
                rounds[1].round_outcome = RoundOutcome::Disputed;
                rounds[1].second = Some((VantageNo(2), rounds[2].first_outcome.clone()));
                alert_evidence::sentences(&rounds, alert.agents)
            })
            .collect::<Vec<_>>()
    });
    assert_eq!(
        sentences,
        [
            "Asia: unexpected status 503 from tokyo-1 (AS64500), then from tokyo-2 (AS64501); 5 s later, unexpected \
             status 503 from a former agent, then from tokyo-2 (AS64501)",
            "Europe: passed in 88 ms from paris-1 (AS64502)",
            "Asia: unexpected status 503 from tokyo-1 (AS64500), but passed in 88 ms from paris-1 (AS64502); 5 s later, \
             unexpected status 503 from tokyo-1 (AS64500), then from tokyo-2 (AS64501)",
            "Europe: passed in 88 ms from paris-1 (AS64502), then unexpected status 503 from tokyo-1 (AS64500)",
        ]
    );
}

#[test]
fn evidence_names_the_agent_that_decided() {
    let sentences = AlertFixture::default().with_alert(AlertKind::WentDown, |alert| {
        let mut rounds = alert.change.evidence.clone();
        let passed = rounds[2].first_outcome.clone();
        rounds[1].third = rounds[1].second.replace((VantageNo(2), passed)).map(Box::new);
        alert_evidence::sentences(&rounds[1..2], alert.agents)
    });
    let expected = "Asia: unexpected status 503 from tokyo-1 (AS64500), but passed in 88 ms from paris-1 (AS64502), \
                    then unexpected status 503 from tokyo-2 (AS64501)";
    assert_eq!(sentences, [expected]);
}

#[test]
fn a_second_round_with_the_same_result_is_written_as_again() {
    let sentences = AlertFixture { reason: Some("connection refused"), ..AlertFixture::default() }.with_alert(
        AlertKind::WentDown,
        |alert| {
            let mut rounds = alert.change.evidence.clone();
            rounds[0].first_vantage = VantageNo(0);
            alert_evidence::sentences(&rounds[..2], alert.agents)
        },
    );
    assert_eq!(
        sentences,
        ["Asia: connection refused from tokyo-1 (AS64500), then from tokyo-2 (AS64501); again 5 s later"]
    );
}

#[test]
fn times_have_a_zone_and_durations_two_units() {
    let at = Timestamp::from_millis(1_772_357_405_000);
    assert_eq!(
        time_format::format_time(at, chrono_tz::Europe::Berlin),
        "2026-03-01 10:30:05 (Europe/Berlin, UTC+01:00)"
    );
    assert_eq!(time_format::format_time(at, chrono_tz::UTC), "2026-03-01 09:30:05 (UTC)");
    for (millis, text) in [
        (-5, "0 ms"),
        (250, "250 ms"),
        (59_999, "59 s"),
        (61_000, "1 min 1 s"),
        (3_600_000, "1 h"),
        (3_605_000, "1 h"),
        (90_000_000, "1 d 1 h"),
    ] {
        assert_eq!(time_format::format_duration(millis), text, "{millis}");
    }
}

#[test]
fn an_alert_mail_has_reason_time_and_check_results() {
    let mail = AlertFixture::default().mail(AlertKind::WentDown);
    assert_eq!(mail.subject, "Down: Checkout (Shop)");
    assert_eq!(
        mail.text,
        "Down: Checkout (Shop)\n\
         \n\
         Reason: unexpected status 503\n\
         Down from: Asia; up from Europe\n\
         Since: 1970-01-01 01:00:01 (Europe/Berlin, UTC+01:00)\n\
         Checked: https://shop.example/cart\n\
         \n\
         Check results:\n\
         - Asia: unexpected status 503 from tokyo-1 (AS64500), then from tokyo-2 (AS64501); 5 s later, unexpected \
         status 503 from a former agent, then from tokyo-2 (AS64501)\n\
         - Europe: passed in 88 ms from paris-1 (AS64502)\n\
         \n\
         Open the status page: https://shop.example\n\
         \n\
         -- \n\
         You received this email because this address receives alerts for Shop.\n"
    );
    for part in ["<h1", "Asia: unexpected status 503", "href=\"https://shop.example\"", "color-scheme"] {
        assert!(mail.html.contains(part), "{part} in {}", mail.html);
    }
    for markup in ["<img", "<link", "src=", "url(", "<script", "@import"] {
        assert!(!mail.html.contains(markup), "{markup} would load a resource");
    }
    let titles = AlertKind::ALL.map(|kind| AlertFixture::default().mail(kind).subject);
    let expected = ["Down", "Still down", "Recovered", "Slow", "Back to normal"];
    assert_eq!(titles, expected.map(|title| format!("{title}: Checkout (Shop)")));
    let test = AlertFixture { is_test: true, ..AlertFixture::default() }.mail(AlertKind::WentDown);
    assert_eq!(test.subject, "[Test] Down: Checkout (Shop)");
    assert!(test.text.contains("Nothing happened"));
}

#[test]
fn a_subscribers_mail_ends_with_the_unsubscribe_link() {
    let mail = AlertFixture { page: "A <b>", ..AlertFixture::default() }.mail(AlertKind::Recovered);
    let mail = mail::with_unsubscribe(&mail, &named("A <b>"), "https://s.example/u?a=1&b=2");
    assert!(
        mail.text
            .ends_with("You received this email because you subscribed to updates from A <b>.\nUnsubscribe: https://s.example/u?a=1&b=2\n")
    );
    assert!(mail.html.contains("updates from A &#60;b&#62;."), "{}", mail.html);
    assert!(mail.html.contains("<a href=\"https://s.example/u?a=1&#38;b=2\">Unsubscribe</a>"), "{}", mail.html);
    assert!(!mail.html.contains("<!--footer-->"));
}

#[test]
fn each_channels_body_has_the_documented_format() {
    let fixture = AlertFixture::default();
    let body_for = |channel| fixture.json(channel, AlertKind::WentDown);
    let slack = body_for(ChannelKind::Slack);
    assert_eq!((&slack["text"], &slack["mrkdwn"]), (&json!("Down: Checkout (Shop)"), &json!(false)));
    assert_eq!(slack["attachments"][0]["fallback"], "Down: Checkout (Shop)");
    assert_eq!(slack["attachments"][0]["title_link"], "https://shop.example");
    assert_eq!(slack["attachments"][0]["fields"][0]["title"], "Reason");
    let discord = body_for(ChannelKind::Discord);
    assert_eq!(discord["allowed_mentions"], json!({ "parse": [] }));
    assert_eq!(discord["embeds"][0]["url"], "https://shop.example");
    assert_eq!(discord["embeds"][0]["timestamp"], "1970-01-01T00:00:31.000Z");
    let teams = body_for(ChannelKind::Teams);
    assert_eq!(teams["type"], "message");
    let card = &teams["attachments"][0]["content"];
    assert_eq!((&card["type"], &card["version"]), (&json!("AdaptiveCard"), &json!("1.4")));
    assert_eq!(card["body"][0]["inlines"][0]["text"], "Down: Checkout (Shop)");
    let telegram = body_for(ChannelKind::Telegram);
    assert_eq!(telegram["parse_mode"], "HTML");
    assert!(telegram["text"].as_str().unwrap().starts_with("🔴 <b>Down: Checkout (Shop)</b>\n"));
    let ntfy = body_for(ChannelKind::Ntfy);
    assert_eq!((&ntfy["title"], &ntfy["priority"]), (&json!("Down: Checkout (Shop)"), &json!(5)));
    let pagerduty = body_for(ChannelKind::PagerDuty);
    assert_eq!(pagerduty["payload"]["summary"], "Down: Checkout (Shop)");
    assert_eq!(pagerduty["payload"]["severity"], "critical");
    for secret in ["chat_id", "topic", "routing_key"] {
        for body in [&telegram, &ntfy, &pagerduty] {
            assert_eq!(body.get(secret), None);
        }
    }
}

#[test]
fn a_recovery_resolves_the_same_pagerduty_incident() {
    let fixture = AlertFixture::default();
    let body_for = |kind| fixture.json(ChannelKind::PagerDuty, kind);
    let opened = [AlertKind::WentDown, AlertKind::StillDown].map(|kind| body_for(kind)["dedup_key"].clone());
    assert_eq!(opened[0], opened[1]);
    let slow = body_for(AlertKind::WentSlow);
    assert_eq!((&slow["event_action"], &slow["payload"]["severity"]), (&json!("trigger"), &json!("warning")));
    assert_ne!(slow["dedup_key"], opened[0]);
    let recovered = body_for(AlertKind::Recovered);
    assert_eq!((&recovered["event_action"], &recovered["dedup_key"]), (&json!("resolve"), &opened[0]));
    let expected = json!({ "event_action": "resolve", "dedup_key": slow["dedup_key"] });
    assert_eq!(recovered[pagerduty::FOLLOW_UP_FIELD], expected, "the end of an outage also ends slowness");
    let normal = body_for(AlertKind::BackToNormal);
    assert_eq!((&normal["event_action"], &normal["dedup_key"]), (&json!("resolve"), &slow["dedup_key"]));
    let test = AlertFixture { is_test: true, ..fixture }.json(ChannelKind::PagerDuty, AlertKind::WentDown);
    assert_ne!(test["dedup_key"], opened[0], "a test affects no incident");
}

#[test]
fn chat_messages_about_the_start_and_end_of_flapping() {
    let at = Timestamp::from_millis;
    let flapping = Flapping { since: at(1_000), changes: 3 };
    let body = |kind| {
        let rendered = AlertFixture::default()
            .with_alert(kind, |alert| super::render_flapping(ChannelKind::Ntfy, alert, flapping));
        let DeliveryMessage::Json(json) = rendered else { panic!("{rendered:?}") };
        serde_json::from_slice::<Value>(&json).unwrap()
    };
    let down = body(AlertKind::WentDown);
    assert_eq!((&down["title"], &down["priority"]), (&json!("Flapping: Checkout (Shop)"), &json!(5)));
    let message = down["message"].as_str().unwrap();
    let expected =
        "Changes: 3 since 1970-01-01 01:00:01 (Europe/Berlin, UTC+01:00)\nNow: down\nReason: unexpected status 503\n";
    assert!(message.starts_with(expected), "{message}");
    assert!(message.contains("Next: one message after 30 minutes without a change"), "{message}");
    assert!(body(AlertKind::WentSlow)["message"].as_str().unwrap().contains("\nNow: slow\n"));
    for (aspect, is_bad, title, now) in [
        (Aspect::Availability, false, "Stable again", "up since"),
        (Aspect::Availability, true, "Stopped flapping, now down", "down since"),
        (Aspect::Speed, false, "Stable again", "at normal speed since"),
        (Aspect::Speed, true, "Stopped flapping, now slow", "slow since"),
    ] {
        let end = FlappingEnd { aspect, flapping, last_change: at(9_000), is_bad };
        let rendered = AlertFixture::default().with_alert(AlertKind::Recovered, |alert| {
            super::render_stable(ChannelKind::Slack, alert.subject, &end, alert.at, alert.zone)
        });
        let DeliveryMessage::Json(json) = rendered else { panic!("{rendered:?}") };
        let body: Value = serde_json::from_slice(&json).unwrap();
        assert_eq!(body["text"], format!("{title}: Checkout (Shop)"));
        let fields = body["attachments"][0]["fields"].to_string();
        assert!(fields.contains(&format!("\"{now} 1970-01-01 01:00:09")), "{fields}");
    }
}
