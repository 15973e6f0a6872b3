//! The alert's JSON, event by event.

use serde_json::{Value, json};

use super::super::tests::Cast;
use super::*;

fn told(kind: AlertKind) -> Value {
    let cast = Cast { monitor: "Cart \u{2028}\"é\"", ..Cast::default() };
    cast.tell(kind, |news| serde_json::from_slice(&Alert::new(news).bytes()).unwrap())
}

#[test]
fn each_event_has_its_own_fields_and_null_in_the_others() {
    let fields = ["error", "downSince", "downFrom", "latencyMs", "thresholdMs", "durationMs"];
    let why = json!("unexpected status 503");
    let asia = json!(["asia"]);
    let none = Value::Null;
    for (kind, expected) in [
        (AlertKind::WentDown, [&why, &none, &asia, &none, &none, &none]),
        (AlertKind::StillDown, [&why, &json!(1_000), &asia, &none, &none, &json!(30_000)]),
        (AlertKind::Recovered, [&why, &json!(1_000), &none, &json!(1_500), &none, &json!(60_000)]),
        (AlertKind::WentSlow, [&none, &none, &none, &json!(1_500), &json!(900), &none]),
        (AlertKind::BackToNormal, [&none, &none, &none, &json!(1_500), &json!(900), &json!(60_000)]),
    ] {
        let told = told(kind);
        assert_eq!(fields.map(|name| &told[name]), expected, "{told}");
        assert_eq!((&told["event"], &told["at"]), (&json!(kind.name()), &json!(31_000)));
        assert_eq!(
            (&told["monitor"], &told["url"]),
            (&told["checkpoint"], &json!("https://shop.example/cart"))
        );
    }
}

#[test]
fn every_field_of_the_contract_is_there_in_a_fixed_order() {
    let names: Vec<String> = told(AlertKind::WentDown).as_object().unwrap().keys().cloned().collect();
    let expected = [
        "event",
        "page",
        "pageId",
        "monitor",
        "checkpoint",
        "monitorId",
        "url",
        "pageUrl",
        "error",
        "downSince",
        "downFrom",
        "latencyMs",
        "thresholdMs",
        "durationMs",
        "at",
        "evidence",
    ];
    assert_eq!(names, expected);
}

#[test]
fn evidence_names_both_places_and_what_each_saw() {
    let told = told(AlertKind::WentDown);
    let sight = |place: &str, network: &str| {
        json!({
            "place": place, "network": network, "ok": false, "statusCode": 503, "latencyMs": 41,
            "address": "192.0.2.7", "error": "unexpected status 503",
        })
    };
    let round = json!({
        "region": "asia", "reason": "scheduled", "round": 7, "startedAt": 1_000, "result": "failed",
        "first": sight("tokyo-1", "AS64500"), "second": sight("tokyo-2", "AS64501"),
    });
    assert_eq!(told["evidence"][0], round);
    assert_eq!(told["evidence"][1]["reason"], "second-round");
    assert_eq!(told["evidence"][1]["first"]["place"], Value::Null, "a place that is gone");
    assert_eq!(told["evidence"][2]["first"]["ok"], true);
}

#[test]
fn a_test_says_that_it_is_one_and_nothing_else_does() {
    assert_eq!(told(AlertKind::WentDown).get("test"), None);
    let cast = Cast { is_test: true, ..Cast::default() };
    let told: Value = cast.tell(AlertKind::WentDown, |news| serde_json::to_value(Alert::new(news)).unwrap());
    assert_eq!(told["test"], true);
}
