//! Tests of every document under `tests/fixtures/vendor` against its `.reading.json` file.

mod null_fields;
mod unknown_words;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::format::{FORMATS, SINGLE_HOST_FORMATS};
use super::page_id::is_id;

use super::*;

/// Time of the readings: 1 September 2026, noon.
const NOW_MS: i64 = 1_788_264_000_000;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/vendor")
}

fn reader(product: &str, case: &str) -> fn(&[u8]) -> Option<VendorPage> {
    match product {
        "statuspage" | "incidentio" | "openstatus" => statuspage::read,
        "instatus" if case.ends_with(".components") => instatus::components,
        "instatus" => instatus::summary,
        "betterstack" => betterstack::read,
        "slack" => slack::read,
        "heroku" => heroku::read,
        "google" if case.ends_with(".products") => google::products,
        "google" => google::incidents,
        "aws" if case.ends_with(".services") => aws::services,
        "aws" => aws::events,
        "azure" => |body| azure::read(body, NOW_MS),
        "cachet2" if case.ends_with(".status") => cachet::status2,
        "cachet2" => cachet::components2,
        "cachet3" if case.ends_with(".status") => cachet::status3,
        "cachet3" => cachet::components3,
        "kuma" if case.ends_with(".beats") => kuma::heartbeats,
        "kuma" => kuma::page,
        "parallax" => parallax::read,
        "statusio" => statusio::read,
        "statuspal" => statuspal::read,
        "uptimerobot" => uptimerobot::read,
        other => panic!("{other} has no reader here"),
    }
}

fn reading_json(reading: Result<VendorReading, NoReading>) -> Value {
    match reading {
        Ok(reading) => json!({
            "state": format!("{:?}", reading.state),
            "word": reading.vendor_text.as_str(),
            "incident": reading.incident.as_ref().map(ShortText::as_str),
        }),
        Err(NoReading::Missing(_) | NoReading::Empty) => json!("missing"),
        Err(NoReading::Unreadable(why)) => json!(format!("unread: {why}")),
        Err(NoReading::Unknown(text)) => json!(format!("unknown: {text}")),
    }
}

#[test]
fn every_document_has_the_reading_beside_it() {
    let (mut read, mut wrong) = (0, Vec::new());
    for product in std::fs::read_dir(folder()).unwrap() {
        let product = product.unwrap();
        for file in std::fs::read_dir(product.path()).unwrap() {
            let path = file.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            let Some(case) = name.strip_suffix(".reading.json") else { continue };
            let expected: serde_json::Map<String, Value> =
                serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
            let document = std::fs::read(path.with_file_name(format!("{case}.json")))
                .or_else(|_| std::fs::read(path.with_file_name(format!("{case}.xml"))))
                .unwrap();
            let product = product.file_name().into_string().unwrap();
            let page = reader(&product, case)(&document).expect(case);
            for (component, reading) in expected {
                let component = Some(component.as_str()).filter(|name| !name.is_empty());
                let own = reading_json(page.reading(component));
                if own != reading {
                    wrong.push(format!("{product} {case} {component:?}: {own} and not {reading}"));
                }
            }
            read += 1;
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(read >= 45, "{read} documents");
}

#[test]
fn a_product_has_the_state_of_its_worst_open_incident() {
    let read = |case: &str| std::fs::read(folder().join("google").join(case)).unwrap();
    let mut page = google::incidents(&read("open.json")).unwrap();
    page.merge(&google::products(&read("list.products.json")).unwrap());
    assert_eq!(page.reading(Some("Cloud SQL")).unwrap().state, VendorState::Degraded);
    assert_eq!(page.reading(Some("Pub/Sub")).unwrap().state, VendorState::Operational);
    assert!(matches!(page.reading(Some("Reader")), Err(NoReading::Missing(has)) if has.contains("\"Cloud SQL\"")));
}

#[test]
fn an_unknown_document_has_no_format() {
    for body in [
        &b""[..],
        b"{}",
        b"[]",
        b"null",
        b"<html><body>All systems operational</body></html>",
        b"{\"status\":\"ok\"}",
        b"{\"page\":{},\"status\":\"none\"}",
        b"{\"page\":{\"status\":\"up and running\"}}",
        b"{\"data\":{\"type\":\"status_page\"}}",
    ] {
        for document in FORMATS.iter().chain(SINGLE_HOST_FORMATS).flat_map(|format| format.documents) {
            // For AWS an empty list means that there are no events.
            if body == b"[]" && document.paths.iter().any(|path| path.ends_with("/currentevents")) {
                continue;
            }
            assert_eq!(document.read(body, NOW_MS), None, "{} {:?}", String::from_utf8_lossy(body), document.paths);
        }
    }
}

#[test]
fn a_summary_is_not_read_as_another_products() {
    for (product, case, own) in
        [("statuspage", "fine.json", 0), ("instatus", "fine.summary.json", 1), ("betterstack", "fine.json", 2)]
    {
        let body = std::fs::read(folder().join(product).join(case)).unwrap();
        for (index, format) in FORMATS.iter().enumerate().take(3) {
            let is_read = format.documents.first().is_some_and(|document| document.read(&body, NOW_MS).is_some());
            assert_eq!(is_read, index == own, "{product} read as {index}");
        }
    }
}

#[test]
fn names_similar_to_a_missing_one_are_suggested() {
    let named = |names: &[&str]| VendorPage {
        components: names
            .iter()
            .map(|name| PageComponent { name: (*name).to_owned(), ..PageComponent::default() })
            .collect(),
        ..VendorPage::default()
    };
    let page = named(&["API", "Api Gateway", "Dashboard", "Webhooks", "API"]);
    for (component, message) in [
        ("Apis", "similar: \"API\""),
        ("gateway", "similar: \"Api Gateway\""),
        ("dashbord", "similar: \"Dashboard\""),
        ("Email", "it has \"API\", \"Api Gateway\", \"Dashboard\" and 1 more"),
    ] {
        assert_eq!(page.reading(Some(component)), Err(NoReading::Missing(message.to_owned())), "{component}");
    }
    assert_eq!(VendorPage::default().reading(Some("API")), Err(NoReading::Empty));
    let long = "x".repeat(100_000);
    let Err(NoReading::Missing(message)) = named(&[&long, &long, "", "y"]).reading(Some("Web")) else {
        panic!("found")
    };
    assert!(message.len() < 120, "{message}");
}

#[test]
fn page_addresses_are_normalized() {
    for (address, page) in [
        ("status.acme.example", "https://status.acme.example"),
        ("https://Status.Acme.example/", "https://status.acme.example"),
        ("https://status.acme.example/history?page=2#top", "https://status.acme.example"),
        ("https://status.acme.example/incidents/abc123", "https://status.acme.example"),
        ("https://status.acme.example/api/v2/summary.json", "https://status.acme.example"),
        ("https://status.acme.example/history.atom", "https://status.acme.example"),
        ("http://host.example:8080/status/slug/", "http://host.example:8080/status/slug"),
    ] {
        assert_eq!(normalized_address(address).as_deref(), Some(page), "{address}");
    }
    for bad in ["", "ftp://status.example", "https://", "mailto:a@b.example"] {
        assert_eq!(normalized_address(bad), None, "{bad}");
    }
}

#[test]
fn a_products_own_host_is_tried_with_its_format_first() {
    let first = |base: &str| candidates(base)[0].name;
    assert_eq!(first("https://acme.instatus.com"), "Instatus");
    assert_eq!(first("https://acme.betteruptime.com"), "Better Stack");
    assert_eq!(first("https://instatus.com.evil.example"), "Statuspage");
    assert_eq!(first("https://notinstatus.com"), "Statuspage");
    assert_eq!(candidates("https://status.acme.example").len(), FORMATS.len());
    assert_eq!(first("https://status.heroku.com"), "Heroku");
    assert_eq!(candidates("https://status.slack.com").len(), 1, "there is no other format");
}

#[test]
fn an_unknown_state_ranks_between_outage_and_operational() {
    let part = |text: &str, state| PageComponent {
        name: text.to_owned(),
        group: Some("All".to_owned()),
        label: StateLabel::new(text, state),
        ..PageComponent::default()
    };
    let well = || part("well", Some(VendorState::Operational));
    let unknown = || part("odd", None);
    let slow = || part("slow", Some(VendorState::Degraded));
    let page = |components| VendorPage { components, ..VendorPage::default() };
    assert_eq!(page(vec![well(), unknown()]).reading(None), Err(NoReading::Unknown("odd".to_owned())));
    assert_eq!(page(vec![unknown(), slow(), well()]).reading(None).unwrap().state, VendorState::Degraded);
    assert_eq!(page(vec![well()]).reading(Some("all")).unwrap().state, VendorState::Operational);
}

#[test]
fn a_pages_id_is_read_from_addresses_and_documents() {
    assert_eq!(PageIdSource::After("/status/").in_address("https://kuma.example/status/acme"), Some("acme".to_owned()));
    for other in ["https://kuma.example", "https://kuma.example/status/a/b", "https://kuma.example/status/..%2f"] {
        assert_eq!(PageIdSource::After("/status/").in_address(other), None, "{other}");
    }
    assert_eq!(PageIdSource::Host.in_address("https://acme.statuspal.eu"), Some("acme".to_owned()));
    assert_eq!(PageIdSource::Host.in_address("https://statuspal.eu"), None);
    let html = b"<script>var pageId; pageId = '0123456789abcdef01234567';</script>";
    assert_eq!(statusio::page_id(html).as_deref(), Some("0123456789abcdef01234567"));
    for other in [&b"pageId = '0123456789abcdef0123456'"[..], b"pageId = '../../../../../../../..'", b"pageId", b""] {
        assert_eq!(statusio::page_id(other), None);
    }
    assert_eq!(kuma::slug(br#"{"type":"entryPage","entryPage":"statusPage-acme"}"#).as_deref(), Some("acme"));
    assert_eq!(kuma::slug(br#"{"type":"entryPage","entryPage":"dashboard"}"#), None);
    assert_eq!(kuma::slug(br#"{"type":"statusPageMatchedDomain","statusPageSlug":"../x"}"#), None);
    let document = &candidates("https://acme.statuspal.eu")[0].documents[0];
    let addresses = document.addresses("https://acme.statuspal.eu", Some("acme"), 1);
    assert_eq!(addresses, ["https://statuspal.eu/api/v2/status_pages/acme/summary"]);
    assert!(document.addresses("https://acme.statuspal.eu", None, 1).is_empty());
    assert_eq!(candidates("https://kuma.example/status/acme")[0].name, "Uptime Kuma");
    assert!(!is_id("") && !is_id("a/b") && !is_id("..") && !is_id(&"a".repeat(101)));
}

#[test]
fn heartbeats_are_matched_to_their_monitors() {
    let read = |case: &str| std::fs::read(folder().join("kuma").join(case)).unwrap();
    let mut page = kuma::page(&read("groups.page.json")).unwrap();
    page.merge(&kuma::heartbeats(&read("some.beats.json")).unwrap());
    let reading = page.reading(Some("Core / API")).unwrap();
    assert_eq!(reading.state, VendorState::MajorOutage);
    assert_eq!(reading.incident.unwrap().as_str(), "We look into it");
    assert_eq!(page.reading(Some("Web")).unwrap().state, VendorState::Operational);
    assert_eq!(page.reading(Some("Edge / API")).unwrap().state, VendorState::Maintenance);
    assert_eq!(page.reading(Some("Paused")), Err(NoReading::Unknown("no heartbeat".to_owned())));
    assert_eq!(page.reading(None).unwrap().state, VendorState::Degraded);
}

#[test]
fn groups_find_their_components() {
    let read = |case: &str| std::fs::read(folder().join("cachet2").join(case)).unwrap();
    let mut page = cachet::components2(&read("list.components.json")).unwrap();
    let groups = br#"{"meta":{"pagination":{"current_page":1,"total_pages":2}},
        "data":[{"name":"Core","enabled_components":[{"id":1}]},{"name":"Empty"}]}"#;
    let groups = cachet::groups2(groups).unwrap();
    assert!(groups.has_next);
    page.merge(&groups);
    assert_eq!(page.reading(Some("Core / API")).unwrap().state, VendorState::Operational);
    let open = br#"{"data":[{"name":"Over","status":4},{"name":"Open","status":"2"}]}"#;
    page.merge(&cachet::incidents2(open).unwrap());
    assert_eq!(page.reading(Some("Web")).unwrap().incident.unwrap().as_str(), "Open");
}

#[test]
fn list_pages_are_read_until_the_list_is_complete() {
    let sheet = |total: u64| {
        let monitors =
            [json!({"name": "Web", "statusClass": "success"}), json!({"name": "API", "statusClass": "success"})];
        let psp = json!({"perPage": 2, "totalMonitors": total, "monitors": monitors});
        uptimerobot::read(json!({ "psp": psp }).to_string().as_bytes()).unwrap()
    };
    assert!(sheet(3).has_next);
    assert!(!sheet(2).has_next);
}

#[test]
fn deep_nesting_is_refused_and_not_followed() {
    let deep = |n: usize| {
        let open = r#"{"name":"A","current_incident_type":null,"children":["#.repeat(n);
        let services = format!("{open}{}", "]}".repeat(n));
        format!(r#"{{"status_page":{{"current_incident_type":null}},"services":[{services}]}}"#)
    };
    assert!(statuspal::read(deep(30).as_bytes()).is_some());
    assert_eq!(statuspal::read(deep(100_000).as_bytes()), None);
    let feed = format!("<rss><channel>{}{}</channel></rss>", "<a>".repeat(20), "</a>".repeat(20));
    assert_eq!(azure::read(feed.as_bytes(), NOW_MS), None);
    assert_eq!(azure::read(b"<!DOCTYPE rss [<!ENTITY a \"b\">]><rss><channel></channel></rss>", NOW_MS), None);
}
