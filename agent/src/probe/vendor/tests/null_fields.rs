//! Tests with documents in which one field is null, odd or missing: the rest is read as before, and nothing
//! becomes operational by it.

use super::*;

/// Collects the positions in a document as JSON pointers, without the root.
fn pointers(value: &Value, at: &str, found: &mut Vec<String>) {
    let children: Vec<(String, &Value)> = match value {
        Value::Object(fields) => {
            fields.iter().map(|(name, inner)| (name.replace('~', "~0").replace('/', "~1"), inner)).collect()
        }
        Value::Array(list) => list.iter().enumerate().map(|(at, inner)| (at.to_string(), inner)).collect(),
        _ => Vec::new(),
    };
    for (name, inner) in children {
        let at = format!("{at}/{name}");
        pointers(inner, &at, found);
        found.push(at);
    }
}

/// Returns the document without the outermost list item that contains the position; `None` if there is none.
fn without_item(document: &Value, pointer: &str) -> Option<Value> {
    let steps: Vec<&str> = pointer.split('/').skip(1).collect();
    let is_item = |n: &usize| {
        let list = steps.get(..*n).map(|steps| steps.iter().map(|step| format!("/{step}")).collect::<String>());
        list.and_then(|list| document.pointer(&list)).is_some_and(Value::is_array)
    };
    let depth = (0..steps.len()).find(is_item)?;
    let list: String = steps.iter().take(depth).map(|step| format!("/{step}")).collect();
    let mut rest = document.clone();
    rest.pointer_mut(&list)?.as_array_mut()?.remove(steps.get(depth)?.parse().ok()?);
    Some(rest)
}

/// Returns true for a field without which a document is not recognised, or has nothing else to read.
fn is_mark(product: &str, case: &str, pointer: &str) -> bool {
    let kind = case.rsplit('.').next().unwrap_or(case);
    match (product, kind) {
        ("instatus", "components") => pointer == "/components",
        ("instatus", _) => pointer == "/page",
        ("google", "products") => pointer == "/products",
        ("heroku", _) => pointer == "/status",
        ("statusio", _) => pointer == "/result",
        ("uptimerobot", _) => pointer == "/psp",
        ("cachet2" | "cachet3", _) => pointer == "/data",
        _ => false,
    }
}

/// Returns the names and states of the components, read one by one.
fn states(page: &VendorPage) -> Vec<(String, Option<VendorState>)> {
    page.components.iter().map(|one| (one.name.clone(), one.label.state)).collect()
}

fn is_well(state: Option<VendorState>) -> bool {
    matches!(state, Some(VendorState::Operational | VendorState::Maintenance))
}

#[test]
fn one_null_or_invalid_field_invalidates_nothing_else() {
    let (mut tried, mut wrong) = (0, Vec::new());
    for product in std::fs::read_dir(folder()).unwrap() {
        let product = product.unwrap();
        for file in std::fs::read_dir(product.path()).unwrap() {
            let path = file.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            let Some(case) = name.strip_suffix(".json").filter(|case| !case.ends_with(".reading")) else {
                continue;
            };
            let product = product.file_name().into_string().unwrap();
            // UTF-16 documents have a UTF-8 copy with the same contents.
            let Ok(document) = serde_json::from_slice::<Value>(&std::fs::read(&path).unwrap()) else {
                continue;
            };
            let mut found = Vec::new();
            pointers(&document, "", &mut found);
            for pointer in found {
                for invalid in [Value::Null, json!(7), json!("odd"), json!([null]), json!({"odd": null})] {
                    tried += 1;
                    if let Err(why) = check(&product, case, &document, &pointer, &invalid) {
                        wrong.push(format!("{product} {case} {pointer} = {invalid}: {why}"));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {tried}: {:#?}", wrong.len(), wrong.iter().take(40).collect::<Vec<_>>());
    assert!(tried > 2000, "{tried} documents");
}

/// Puts `odd` at the position and compares.
fn check(product: &str, case: &str, document: &Value, pointer: &str, value: &Value) -> Result<(), String> {
    let read = |document: &Value| reader(product, case)(document.to_string().as_bytes());
    let before = read(document).ok_or("the document itself is not read")?;
    let mut changed = document.clone();
    *changed.pointer_mut(pointer).ok_or("no such place")? = value.clone();
    let Some(after) = read(&changed) else {
        // A field that identifies the product must be of its type; only null is tolerated.
        let is_all = before.components.is_empty()
            || is_mark(product, case, pointer)
            || document.as_array().is_some_and(|list| list.len() == 1 && pointer == "/0");
        return if value.is_null() && !is_all { Err("not read".to_owned()) } else { Ok(()) };
    };
    // Lists of incidents, which determine the components' states.
    let lists_incidents = match product {
        "slack" => true,
        "google" | "aws" => !case.ends_with(".products") && !case.ends_with(".services"),
        _ => false,
    };
    // The other items of the list are read as without the changed one.
    let rest = without_item(document, pointer).filter(|_| !lists_incidents);
    if let Some(rest) = rest.and_then(|rest| read(&rest)) {
        let mut left = states(&after);
        for one in states(&rest) {
            let at = left.iter().position(|other| *other == one).ok_or_else(|| format!("{one:?} is lost"))?;
            left.remove(at);
        }
    }
    // In these, the absence of incidents means that all is well.
    if matches!(product, "google" | "statuspal" | "slack" | "aws") {
        return Ok(());
    }
    // Null there means that another field counts instead.
    let stands_aside = match product {
        "cachet3" => pointer.ends_with("/latest_status"),
        "statusio" => pointer.ends_with("/status_code"),
        _ => false,
    };
    if stands_aside && value.is_null() {
        return Ok(());
    }
    for (name, state) in states(&after) {
        let of_before: Vec<_> = before.components.iter().filter(|one| one.name == name).collect();
        if is_well(state) && !of_before.is_empty() && !of_before.iter().any(|one| is_well(one.label.state)) {
            return Err(format!("{name} has become operational"));
        }
    }
    let whole = |page: &VendorPage| page.reading(None).ok().map(|reading| reading.state);
    if is_well(whole(&after)) && !is_well(whole(&before)) {
        return Err("the overall state has become operational".to_owned());
    }
    Ok(())
}

#[test]
fn an_unclear_incident_is_not_read_as_operational() {
    for incidents in [json!(null), json!([{"type": "outage", "services": null}])] {
        let current = json!({"status": "active", "active_incidents": incidents});
        let page = slack::read(current.to_string().as_bytes()).unwrap();
        assert!(matches!(page.reading(Some("Search")), Err(NoReading::Unknown(_))), "{current}");
    }
    let summary = json!({"status_page": null, "services": [
        {"name": "DNS"}, {"name": "Web", "current_incident_type": null}, null, 7,
    ]});
    let page = statuspal::read(summary.to_string().as_bytes()).unwrap();
    assert_eq!(page.reading(Some("DNS")), Err(NoReading::Unknown("no status".to_owned())));
    assert_eq!(page.reading(Some("Web")).unwrap().state, VendorState::Operational);
    assert_eq!(page.reading(None), Err(NoReading::Unknown("no status".to_owned())));
}

#[test]
fn an_unreadable_item_is_not_read_as_operational() {
    let (part, unread) = (json!({"name": "API", "status": "operational"}), json!(null));
    let resource = json!({"id": 1, "type": "status_page_resource", "attributes": {"status": "operational"}});
    let invalid = json!({"id": 2, "type": "status_page_resource", "attributes": 7});
    let event = json!({"external_desc": "Old", "status_impact": "AVAILABLE", "end": "2026-01-01"});
    let pages = [
        heroku::read(json!({"status": [{"system": "Apps", "status": "green"}, unread]}).to_string().as_bytes()),
        statuspage::read(json!({"page": {"id": 1}, "status": null, "components": [part, 7]}).to_string().as_bytes()),
        parallax::read(
            json!({"page": {}, "status": null, "monitors": [{"status": "up"}, unread]}).to_string().as_bytes(),
        ),
        statusio::read(
            json!({"result": {"status_overall": null, "status": [{"status_code": 100, "containers": ["odd"]}]}})
                .to_string()
                .as_bytes(),
        ),
        cachet::components2(
            json!({"data": [{"name": "API", "status": 1, "status_name": "Up"}, unread], "meta": {}})
                .to_string()
                .as_bytes(),
        ),
        cachet::components3(
            json!({"data": [{"type": "components", "attributes": {"status": {"value": 1}}}, unread]})
                .to_string()
                .as_bytes(),
        ),
        instatus::components(json!({"components": [{"status": "OPERATIONAL"}, unread]}).to_string().as_bytes()),
        betterstack::read(json!({"data": null, "included": [resource, unread]}).to_string().as_bytes()),
        betterstack::read(json!({"data": null, "included": [resource, invalid]}).to_string().as_bytes()),
        uptimerobot::read(json!({"psp": null, "data": [{"statusClass": "success"}, unread]}).to_string().as_bytes()),
        google::incidents(json!([event, unread]).to_string().as_bytes()),
        aws::events(b"[null]"),
    ];
    for (index, page) in pages.into_iter().enumerate() {
        let reading = page.unwrap().reading(None);
        assert!(matches!(reading, Err(NoReading::Unknown(_))), "page {index}: {reading:?}");
    }
    let active = json!({"status": "active", "active_incidents": [{"type": "notice", "services": ["Calls"]}, unread]});
    let page = slack::read(active.to_string().as_bytes()).unwrap();
    assert!(matches!(page.reading(Some("Search")), Err(NoReading::Unknown(_))));
}

#[test]
fn a_full_list_page_with_an_unreadable_item_stays_full() {
    let mut monitors = vec![json!({"name": "API", "statusClass": "success"}); 49];
    monitors.push(json!(null));
    let psp = json!({"psp": {"perPage": 50, "totalMonitors": 120, "monitors": monitors}});
    let page = uptimerobot::read(psp.to_string().as_bytes()).unwrap();
    assert!(page.has_next);
    assert_eq!(page.reading(None), Err(NoReading::Unknown("no status".to_owned())));
    let mut parts = vec![json!({"name": "API", "status": 1, "status_name": "Up"}); 99];
    parts.push(json!(7));
    let sheet = json!({"data": parts, "meta": null});
    assert!(cachet::components2(sheet.to_string().as_bytes()).unwrap().has_next);
    assert!(cachet::groups2(sheet.to_string().as_bytes()).unwrap().has_next);
}

#[test]
fn numbers_may_be_texts_and_a_mark_may_stand_before_the_document() {
    let parts = json!([{"id": 1, "name": "API", "status": "1", "status_name": "Up"}]);
    let meta = json!({"pagination": {"current_page": "1", "total_pages": "2"}});
    let body = format!("\u{feff}{}", json!({"data": parts, "meta": meta}));
    let page = cachet::components2(body.as_bytes()).unwrap();
    assert_eq!(page.reading(Some("API")).unwrap().state, VendorState::Operational);
    assert!(page.has_next);
    let psp = json!({"perPage": "1", "totalMonitors": "2", "monitors": [{"name": 7, "statusClass": "success"}]});
    let page = uptimerobot::read(json!({"psp": psp, "data": null}).to_string().as_bytes()).unwrap();
    assert!(page.has_next && page.reading(Some("7")).is_ok());
}
