//! Bounds of a page's fields: one below each edge, the edge, one above.

use super::*;
use crate::id::{AccountId, PageId};
use crate::place::Region;
use crate::time::Timestamp;

fn page() -> Page {
    Page {
        name: "Shop".to_owned(),
        description: Some("All of it".to_owned()),
        support_url: Some("mailto:help@example.com".to_owned()),
        uptime_target: Some(99.9),
        show_deploys: true,
        latency_regions: Some(RegionSet::only(Region::Asia)),
        uptime_regions: Some(RegionSet::only(Region::Asia)),
        ..Page::blank(
            PageId::from_u128(1),
            AccountId::from_u128(1),
            "shop".to_owned(),
            Timestamp::from_millis(0),
        )
    }
}

fn text(length: usize) -> Given<String> {
    Given::Value("é".repeat(length))
}

fn url(length: usize) -> Given<String> {
    Given::Value(format!("https://{}", "a".repeat(length - 8)))
}

fn names(names: &[&str]) -> Given<Vec<String>> {
    Given::Value(names.iter().map(|name| (*name).to_owned()).collect())
}

#[test]
fn what_is_left_out_stays() {
    assert_eq!(PageEdit::default().settle(&page()), Ok(page()));
}

#[test]
fn null_clears_what_may_be_empty() {
    let edit = PageEdit {
        description: Given::Null,
        support_url: Given::Null,
        uptime_target: Given::Null,
        latency_regions: Given::Null,
        uptime_regions: Given::Null,
        ..PageEdit::default()
    };
    let settled = edit.settle(&page()).unwrap();
    assert_eq!((settled.description, settled.support_url, settled.uptime_target), (None, None, None));
    assert_eq!((settled.latency_regions, settled.uptime_regions), (None, None));
}

#[test]
fn null_is_refused_where_something_must_stand() {
    let edit = PageEdit {
        name: Given::Null,
        timezone: Given::Null,
        show_deploys: Given::Null,
        show_locations: Given::Null,
        ..PageEdit::default()
    };
    let faults = edit.settle(&page()).unwrap_err();
    let fields: Vec<_> = faults.iter().map(|fault| fault.field.as_str()).collect();
    assert_eq!(fields, ["name", "timezone", "showDeploys", "showLocations"]);
}

#[test]
fn every_edge_of_a_page_holds() {
    let table: Vec<(&str, PageEdit, bool)> = vec![
        ("name 0", PageEdit { name: text(0), ..PageEdit::default() }, false),
        ("name 1", PageEdit { name: text(1), ..PageEdit::default() }, true),
        ("name 80", PageEdit { name: text(80), ..PageEdit::default() }, true),
        ("name 81", PageEdit { name: text(81), ..PageEdit::default() }, false),
        ("description 200", PageEdit { description: text(200), ..PageEdit::default() }, true),
        ("description 201", PageEdit { description: text(201), ..PageEdit::default() }, false),
        ("support 300", PageEdit { support_url: url(300), ..PageEdit::default() }, true),
        ("support 301", PageEdit { support_url: url(301), ..PageEdit::default() }, false),
        (
            "support ftp",
            PageEdit { support_url: Given::Value("ftp://x".to_owned()), ..PageEdit::default() },
            false,
        ),
        (
            "support bare",
            PageEdit { support_url: Given::Value("mailto:".to_owned()), ..PageEdit::default() },
            false,
        ),
        ("target 89.999", PageEdit { uptime_target: Given::Value(89.999), ..PageEdit::default() }, false),
        ("target 90", PageEdit { uptime_target: Given::Value(90.0), ..PageEdit::default() }, true),
        ("target 99.999", PageEdit { uptime_target: Given::Value(99.999), ..PageEdit::default() }, true),
        ("target 99.9991", PageEdit { uptime_target: Given::Value(99.9991), ..PageEdit::default() }, false),
        (
            "zone",
            PageEdit { timezone: Given::Value("Europe/Berlin".to_owned()), ..PageEdit::default() },
            true,
        ),
        (
            "no zone",
            PageEdit { timezone: Given::Value("Mars/Base".to_owned()), ..PageEdit::default() },
            false,
        ),
        ("no region", PageEdit { latency_regions: names(&[]), ..PageEdit::default() }, false),
        ("bad region", PageEdit { uptime_regions: names(&["mars"]), ..PageEdit::default() }, false),
    ];
    for (what, edit, fits) in table {
        assert_eq!(edit.settle(&page()).is_ok(), fits, "{what}");
    }
}

#[test]
fn every_region_is_the_same_as_all() {
    let all = Region::ALL.map(Region::name);
    let edit = PageEdit { uptime_regions: names(&all), latency_regions: names(&all), ..PageEdit::default() };
    let settled = edit.settle(&page()).unwrap();
    assert_eq!((settled.uptime_regions, settled.latency_regions), (None, Some(RegionSet::ALL)));
}

#[test]
fn slugs_are_labels_and_not_reserved() {
    for (slug, fits) in [
        ("", false),
        ("a", true),
        ("shop-2", true),
        ("-shop", false),
        ("shop-", false),
        ("Shop", false),
        ("sh_op", false),
        ("www", false),
        ("xn--shop", false),
    ] {
        assert_eq!(read_slug(slug).is_ok(), fits, "{slug:?}");
    }
    assert!(read_slug(&"a".repeat(63)).is_ok() && read_slug(&"a".repeat(64)).is_err());
}
