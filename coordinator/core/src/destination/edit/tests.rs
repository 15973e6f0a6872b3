//! Bounds of a destination's fields, and the values that an edit keeps.

use super::*;
use crate::destination::SECRET_OVERLAP;

const SECRET: &str = "whsec_AAAA";

fn now() -> Timestamp {
    Timestamp::from_millis(1_795_783_560_000)
}

fn later() -> Timestamp {
    now() + crate::time::MINUTE
}

fn value(text: &str) -> PatchField<String> {
    PatchField::Value(text.to_owned())
}

fn edit(kind: &str) -> DestinationEdit {
    DestinationEdit { name: value("Team"), kind: value(kind), ..DestinationEdit::default() }
}

fn made(edit: &DestinationEdit) -> Result<Destination, String> {
    let monitors = BTreeSet::from([MonitorId::from_u128(1)]);
    let context =
        DestinationContext { monitors: &monitors, account_email: "owner@example.com", forbidden_address: &|_| None };
    edit.validate_new((DestinationId::from_u128(1), PageId::from_u128(2)), SECRET.to_owned(), &context, now())
        .map_err(|faults| faults.to_string())
}

fn changed(edit: &DestinationEdit, before: &Destination) -> Result<Destination, String> {
    let context = DestinationContext {
        monitors: &BTreeSet::new(),
        account_email: "owner@example.com",
        forbidden_address: &|_| None,
    };
    edit.validate_edit(before, &context, later()).map_err(|faults| faults.to_string())
}

fn webhook() -> DestinationEdit {
    DestinationEdit { url: value("https://hooks.example.com/x"), ..edit("webhook") }
}

#[test]
fn each_type_needs_its_own_fields_and_no_others() {
    let url = || value("https://hooks.example.com/x");
    let good = [
        DestinationEdit { to: value("ann@example.com"), ..edit("email") },
        webhook(),
        DestinationEdit { url: url(), ..edit("slack") },
        DestinationEdit { url: url(), ..edit("discord") },
        DestinationEdit { url: url(), ..edit("teams") },
        DestinationEdit { token: value("123:A-b_c"), chat: value("-100123"), ..edit("telegram") },
        DestinationEdit { url: value("https://ntfy.sh/alerts"), ..edit("ntfy") },
        DestinationEdit { key: value(&"a1".repeat(16)), ..edit("pagerduty") },
    ];
    for (edit, kind) in good.iter().zip(ChannelKind::ALL) {
        let made = made(edit).unwrap();
        assert_eq!(made.channel.kind(), kind);
        assert!(made.enabled && made.events.is_none() && made.monitors.is_none());
        // A wrong value in a field of another type is no error.
        let wrong = || PatchField::Invalid("must be a string".to_owned());
        let noisy = match kind {
            ChannelKind::Email => DestinationEdit { url: wrong(), key: wrong(), ..edit.clone() },
            _ => DestinationEdit { to: wrong(), ..edit.clone() },
        };
        assert_eq!(super::tests::made(&noisy), Ok(made));
    }
    for (kind, missing) in [
        ("email", "to is required"),
        ("webhook", "url is required"),
        ("telegram", "token is required; chat is required"),
        ("ntfy", "url is required"),
        ("pagerduty", "key is required"),
    ] {
        assert_eq!(made(&edit(kind)).unwrap_err(), missing);
    }
    assert_eq!(made(&DestinationEdit::default()).unwrap_err(), "type is required; name is required");
    assert!(made(&edit("fax")).unwrap_err().starts_with("type must be one of email, webhook, slack"));
}

#[test]
fn names_keep_their_length_and_hold_no_control_characters() {
    let named = |name: &str| made(&DestinationEdit { name: value(name), ..webhook() }).map(|it| it.name);
    assert_eq!(named(&"é".repeat(80)), Ok("é".repeat(80)));
    for bad in ["", "  ", &"é".repeat(81), "a\r\nBcc: b@c.example", "a\0b", &"x".repeat(4000)] {
        assert!(named(bad).is_err(), "{bad:?}");
    }
}

#[test]
fn tokens_chats_and_keys_are_validated() {
    let bot = |token: &str| {
        made(&DestinationEdit { token: value(token), chat: value("@news_1"), ..edit("telegram") }).is_ok()
    };
    assert!(bot("1:a") && bot(&format!("1:{}", "a".repeat(198))) && !bot(&format!("1:{}", "a".repeat(199))));
    for bad in ["", "1", ":a", "a:a", "1:", "1:a/../b", "1:a b", "***"] {
        assert!(!bot(bad), "{bad}");
    }
    let chat =
        |chat: &str| made(&DestinationEdit { token: value("1:a"), chat: value(chat), ..edit("telegram") }).is_ok();
    assert!(chat("-1001234567890") && chat("42") && chat("@shop"));
    for bad in ["", "@", "shop", "@a b", "4.2", "99999999999999999999"] {
        assert!(!chat(bad), "{bad}");
    }
    let ntfy = |token: &str| {
        let url = value("https://ntfy.sh/alerts");
        made(&DestinationEdit { url, token: value(token), ..edit("ntfy") })
    };
    assert!(ntfy(&"t".repeat(200)).is_ok() && ntfy(&"t".repeat(201)).is_err());
    assert!(ntfy("").is_ok_and(|it| matches!(it.channel, Channel::Ntfy { token: None, .. })));
    assert!(ntfy("a b").is_err() && ntfy("é").is_err() && ntfy("a\r\nb").is_err());
    let key = |length: usize| made(&DestinationEdit { key: value(&"k".repeat(length)), ..edit("pagerduty") });
    assert!(key(32).is_ok() && key(31).is_err() && key(33).is_err());
}

#[test]
fn events_and_monitors_are_named_or_all() {
    let events = |names: &[&str]| {
        let events = PatchField::Value(names.iter().map(|&name| name.to_owned()).collect());
        made(&DestinationEdit { events, ..webhook() }).map(|it| it.events)
    };
    let both = Some(vec![AlertKind::WentDown, AlertKind::Recovered]);
    assert_eq!(events(&["recovered", "went-down", "recovered"]), Ok(both));
    assert!(events(&[]).is_err() && events(&["down"]).is_err());
    let monitors = |ids: Vec<u128>| {
        let ids = ids.into_iter().map(|id| MonitorId::from_u128(id).to_string()).collect();
        made(&DestinationEdit { monitor_ids: PatchField::Value(ids), ..webhook() }).map(|it| it.monitors)
    };
    assert_eq!(monitors(vec![1, 1]), Ok(Some(vec![MonitorId::from_u128(1)])));
    assert!(monitors(vec![]).is_err() && monitors(vec![2]).is_err());
}

#[test]
fn an_edit_keeps_what_is_left_out_and_switches_on_again() {
    let mut before = made(&webhook()).unwrap();
    before.monitors = Some(vec![MonitorId::from_u128(9)]);
    before.health.failing_since = Some(now());
    let name = DestinationEdit { name: value("Other"), ..DestinationEdit::default() };
    let after = changed(&name, &before).unwrap();
    assert_eq!((after.name.as_str(), &after.channel), ("Other", &before.channel));
    assert_eq!((&after.monitors, &after.health), (&before.monitors, &before.health));
    before.health.disabled = Some((now(), DisableReason::Gone));
    assert_eq!(changed(&name, &before).unwrap().health, DeliveryHealth::default());
    before.health.disabled = None;
    let moved = DestinationEdit { url: value("https://other.example/"), ..DestinationEdit::default() };
    let after = changed(&moved, &before).unwrap();
    assert_eq!(after.health, DeliveryHealth::default(), "a new receiver starts with fresh health");
    assert!(matches!(&after.channel, Channel::Webhook { secret, .. } if secret.newest == SECRET));
    // Monitors that were already listed may be sent again even if they no longer exist.
    let again = DestinationEdit {
        monitor_ids: PatchField::Value(vec![MonitorId::from_u128(9).to_string()]),
        ..DestinationEdit::default()
    };
    assert_eq!(changed(&again, &before).unwrap().monitors, before.monitors);
    for (wrong, rule) in [
        (DestinationEdit { kind: value("slack"), ..DestinationEdit::default() }, "type can't be changed"),
        (DestinationEdit { url: PatchField::Null, ..DestinationEdit::default() }, "url must not be null"),
        (
            DestinationEdit { url: value("https://hooks.example.com/***"), ..DestinationEdit::default() },
            "url is masked: send the full value, or omit the field to keep it",
        ),
    ] {
        assert_eq!(changed(&wrong, &before).unwrap_err(), rule);
    }
}

#[test]
fn a_stored_url_may_be_sent_again_and_a_changed_one_is_judged() {
    let guarded = |edit: &DestinationEdit, before: &Destination| {
        let context = DestinationContext {
            monitors: &BTreeSet::new(),
            account_email: "owner@example.com",
            forbidden_address: &|_| Some("private"),
        };
        edit.validate_edit(before, &context, later()).map_err(|faults| faults.to_string())
    };
    for kind in ["webhook", "slack", "ntfy"] {
        let stored = made(&DestinationEdit { url: value("http://hook.lan/x"), ..edit(kind) }).unwrap();
        let renamed =
            DestinationEdit { name: value("Night"), url: value(" http://hook.lan/x "), ..DestinationEdit::default() };
        assert_eq!(guarded(&renamed, &stored).unwrap().channel, stored.channel, "{kind}");
        for other in ["http://hook.lan/y", "http://other.lan/x", "http://10.0.0.1/x"] {
            let moved = DestinationEdit { url: value(other), ..renamed.clone() };
            assert_eq!(guarded(&moved, &stored).unwrap_err(), "url must not be a private address", "{kind}: {other}");
        }
        let masked = DestinationEdit { url: value("http://hook.lan/***"), ..renamed };
        assert!(guarded(&masked, &stored).unwrap_err().contains("is masked"), "{kind}");
    }
}

#[test]
fn a_new_secret_is_pending_for_a_day_and_a_second_one_replaces_it() {
    let before = made(&webhook()).unwrap();
    let after = before.rotated("whsec_BBBB".to_owned(), now()).unwrap();
    let secret = after.secrets().unwrap();
    let until = now() + SECRET_OVERLAP;
    assert_eq!((secret.active(now()), secret.pending(now())), (SECRET, Some("whsec_BBBB")));
    assert_eq!((secret.active(until), secret.pending(until)), ("whsec_BBBB", None));
    assert_eq!(secret.pending_until(now()), Some(until));
    let second = secret.rotated("whsec_CCCC".to_owned(), later());
    assert_eq!((second.active(later()), second.pending(later())), (SECRET, Some("whsec_CCCC")));
    assert_eq!(second.pending_until(later()), Some(later() + SECRET_OVERLAP));
    let third = second.rotated("whsec_DDDD".to_owned(), later() + SECRET_OVERLAP);
    assert_eq!(third.active(later() + SECRET_OVERLAP), "whsec_CCCC", "the old secret has expired");
    let active = after.activated().unwrap();
    let secret = active.secrets().unwrap();
    assert_eq!((secret.active(now()), secret.pending(now())), ("whsec_BBBB", None));
    let mail = made(&DestinationEdit { to: value("ann@example.com"), ..edit("email") }).unwrap();
    assert_eq!(mail.rotated("whsec_BBBB".to_owned(), now()), None);
}

#[test]
fn a_mailbox_other_than_the_accounts_own_needs_confirmation() {
    let to = |address: &str| DestinationEdit { to: value(address), ..DestinationEdit::default() };
    let of = |address: &str| made(&DestinationEdit { name: value("Ops"), kind: value("email"), ..to(address) });
    assert_eq!(made(&webhook()).unwrap().confirmation_sent_at(), None, "a webhook needs no confirmation");
    let own = of("Owner@Example.com").unwrap();
    assert_eq!((own.confirmation_sent_at(), &own.health), (None, &DeliveryHealth::default()));
    let unconfirmed = of("owner+x@example.com").unwrap();
    assert_eq!(unconfirmed.confirmation_sent_at(), Some(now()));
    assert!(!unconfirmed.receives(AlertKind::WentDown, MonitorId::from_u128(1)));
    let after = |edit: &DestinationEdit, before: &Destination| changed(edit, before).unwrap().confirmation_sent_at();
    let named = DestinationEdit { name: value("Other"), ..DestinationEdit::default() };
    for (before, edit, wanted) in [
        (&unconfirmed, &named, Some(now())),
        (&unconfirmed, &to("owner+x@example.com"), Some(now())),
        (&unconfirmed, &to("ann@example.com"), Some(later())),
        (&unconfirmed, &to("owner@example.com"), None),
        (&own, &named, None),
        (&own, &to("ann@example.com"), Some(later())),
    ] {
        assert_eq!(after(edit, before), wanted, "{before:?} {edit:?}");
    }
    let sure = Destination { health: DeliveryHealth::default(), ..unconfirmed };
    assert_eq!(after(&named, &sure), None, "a confirmed mailbox stays confirmed");
}
