//! Tests with documents that contain unknown words, and with invalid documents.

use proptest::prelude::*;

use super::*;

/// Replaces every status word in a document.
fn with_states(value: &mut Value, state: &Value) {
    const WORDS: [&str; 13] = [
        "status",
        "status_code",
        "indicator",
        "aggregate_state",
        "statusClass",
        "status_impact",
        "value",
        "type",
        "impact",
        "report_type",
        "current",
        "status_name",
        "human",
    ];
    match value {
        Value::Array(list) => list.iter_mut().for_each(|inner| with_states(inner, state)),
        Value::Object(fields) => {
            let is_typed = fields.contains_key("attributes");
            for (name, inner) in fields {
                let is_word = WORDS.contains(&name.as_str()) && !(is_typed && name == "type");
                if is_word && (inner.is_string() || inner.is_number()) {
                    inner.clone_from(state);
                } else {
                    with_states(inner, state);
                }
            }
        }
        _ => {}
    }
}

#[test]
fn an_unknown_state_is_never_operational() {
    let mut readings = 0;
    for product in std::fs::read_dir(folder()).unwrap() {
        let product = product.unwrap();
        for file in std::fs::read_dir(product.path()).unwrap() {
            let path = file.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            let Some(case) = name.strip_suffix(".json").filter(|case| !case.ends_with(".reading")) else {
                continue;
            };
            let product = product.file_name().into_string().unwrap();
            // In these, the absence of incidents means that all is well; the next test covers them.
            if matches!(product.as_str(), "google" | "statuspal") || case.ends_with(".services") {
                continue;
            }
            let Ok(mut document) = serde_json::from_slice::<Value>(&std::fs::read(&path).unwrap()) else {
                continue;
            };
            if document.as_array().is_some_and(Vec::is_empty) {
                continue;
            }
            for state in [json!("splendid"), json!(77)] {
                with_states(&mut document, &state);
                let Some(page) = reader(&product, case)(document.to_string().as_bytes()) else { continue };
                let names = page.components.iter().map(|component| Some(component.name.clone())).chain([None]);
                for component in names {
                    if let Ok(reading) = page.reading(component.as_deref()) {
                        assert!(
                            !matches!(reading.state, VendorState::Operational | VendorState::Maintenance),
                            "{product} {case} {component:?}: {reading:?}"
                        );
                    }
                    readings += 1;
                }
            }
        }
    }
    assert!(readings > 50, "{readings} readings");
}

#[test]
fn an_unknown_state_is_not_operational_where_a_missing_one_is() {
    let google = json!([{
        "external_desc": "Odd", "status_impact": "SPLENDID", "end": null,
        "affected_products": [{"title": "Cloud SQL"}],
    }]);
    let mut page = google::incidents(google.to_string().as_bytes()).unwrap();
    page.merge(&google::products(br#"{"products":[{"title":"Cloud SQL"},{"title":"Pub/Sub"}]}"#).unwrap());
    let unknown = Err(NoReading::Unknown("SPLENDID".to_owned()));
    assert_eq!(page.reading(None), unknown);
    assert_eq!(page.reading(Some("Cloud SQL")), unknown);
    assert_eq!(page.reading(Some("Pub/Sub")).unwrap().state, VendorState::Operational);

    let events = json!([{
        "service": "ec2", "service_name": "EC2", "status": "1",
        "impacted_services": {"rds": {"service_name": "RDS", "current": "9"}, "sqs": {"service_name": "SQS"}},
    }]);
    let mut page = aws::events(events.to_string().as_bytes()).unwrap();
    let services = br#"[{"service":"rds","service_name":"RDS"},{"service":"sqs","service_name":"SQS"}]"#;
    page.merge(&aws::services(services).unwrap());
    assert_eq!(page.reading(Some("rds")), Err(NoReading::Unknown("status 9".to_owned())));
    assert_eq!(page.reading(Some("SQS")), Err(NoReading::Unknown("status ".to_owned())));

    // Includes types that a page has defined itself.
    let summary = json!({
        "status_page": {"current_incident_type": "splendid"},
        "services": [{"name": "DNS", "current_incident_type": "splendid"}],
    });
    let page = statuspal::read(summary.to_string().as_bytes()).unwrap();
    for component in [None, Some("DNS")] {
        assert_eq!(page.reading(component).unwrap().state, VendorState::Degraded);
    }

    for (status, unknown) in [("splendid", "splendid"), ("active", "active")] {
        let current = json!({"status": status, "active_incidents": []});
        let page = slack::read(current.to_string().as_bytes()).unwrap();
        assert_eq!(page.reading(None), Err(NoReading::Unknown(unknown.to_owned())));
    }

    let feed = b"<rss><channel><item><title>Splendid</title></item></channel></rss>";
    let page = azure::read(feed, NOW_MS).unwrap();
    assert_eq!(page.reading(None).unwrap().state, VendorState::Degraded);
    assert_eq!(page.reading(Some("Key Vault")), Err(NoReading::Unknown("Splendid".to_owned())));
}

/// Generates JSON from the names and words that the readers look for, and others.
fn documents() -> impl Strategy<Value = Value> {
    let name = prop::sample::select(vec![
        "page",
        "status",
        "indicator",
        "components",
        "name",
        "id",
        "data",
        "attributes",
        "type",
        "included",
        "services",
        "status_page",
        "current_incident_type",
        "children",
        "publicGroupList",
        "monitorList",
        "heartbeatList",
        "psp",
        "totalMonitors",
        "monitors",
        "result",
        "status_overall",
        "meta",
        "pagination",
        "current_page",
        "total_pages",
        "headline",
        "statusClass",
        "title",
        "incidents",
        "service",
        "service_name",
        "x",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-z]{0,6}".prop_map(Value::from),
        Just(json!("splendid")),
    ];
    leaf.prop_recursive(5, 64, 8, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(name.clone().prop_map(str::to_owned), inner, 0..8)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn no_document_makes_a_reader_panic(document in documents(), bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let document = document.to_string();
        for format_document in FORMATS.iter().chain(SINGLE_HOST_FORMATS).flat_map(|format| format.documents) {
            for body in [document.as_bytes(), &bytes] {
                if let Some(page) = format_document.read(body, NOW_MS) {
                    let _ = page.reading(None);
                    let _ = page.reading(Some("x"));
                }
            }
        }
        let _ = (statusio::page_id(&bytes), kuma::slug(document.as_bytes()));
    }
}
