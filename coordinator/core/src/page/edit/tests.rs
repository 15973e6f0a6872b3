//! Bounds of a page's fields: one below each edge, the edge, one above.

use super::*;
use crate::id::{AccountId, PageId};
use crate::time::Timestamp;
use crate::vantage::Region;

const GROUND: PageEditContext<'static> = PageEditContext {
    own_host: Some("status.example"),
    root_domain: Some("pages.example"),
    token: "t0ken",
    now: Timestamp::from_millis(7),
};

fn page() -> Page {
    Page {
        name: "Shop".to_owned(),
        description: Some("All of it".to_owned()),
        support_url: Some("mailto:help@example.com".to_owned()),
        uptime_target: Some(99.9),
        show_deploys: true,
        latency_regions: Some(RegionSet::only(Region::Asia)),
        uptime_regions: Some(RegionSet::only(Region::Asia)),
        ..Page::blank(PageId::from_u128(1), AccountId::from_u128(1), "shop".to_owned(), Timestamp::from_millis(0))
    }
}

fn text(length: usize) -> PatchField<String> {
    PatchField::Value("é".repeat(length))
}

fn url(length: usize) -> PatchField<String> {
    PatchField::Value(format!("https://{}", "a".repeat(length - 8)))
}

fn names(names: &[&str]) -> PatchField<Vec<String>> {
    PatchField::Value(names.iter().map(|name| (*name).to_owned()).collect())
}

#[test]
fn what_is_left_out_stays() {
    assert_eq!(PageEdit::default().validate(&page(), &GROUND), Ok(page()));
}

#[test]
fn null_clears_what_may_be_empty() {
    let edit = PageEdit {
        description: PatchField::Null,
        support_url: PatchField::Null,
        uptime_target: PatchField::Null,
        latency_regions: PatchField::Null,
        uptime_regions: PatchField::Null,
        ..PageEdit::default()
    };
    let valid = edit.validate(&page(), &GROUND).unwrap();
    assert_eq!((valid.description, valid.support_url, valid.uptime_target), (None, None, None));
    assert_eq!((valid.latency_regions, valid.uptime_regions), (None, None));
}

#[test]
fn null_is_rejected_for_required_fields() {
    let edit = PageEdit {
        name: PatchField::Null,
        timezone: PatchField::Null,
        show_deploys: PatchField::Null,
        show_locations: PatchField::Null,
        ..PageEdit::default()
    };
    let faults = edit.validate(&page(), &GROUND).unwrap_err();
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
            PageEdit { support_url: PatchField::Value("ftp://x".to_owned()), ..PageEdit::default() },
            false,
        ),
        (
            "support bare",
            PageEdit { support_url: PatchField::Value("mailto:".to_owned()), ..PageEdit::default() },
            false,
        ),
        ("target 89.999", PageEdit { uptime_target: PatchField::Value(89.999), ..PageEdit::default() }, false),
        ("target 90", PageEdit { uptime_target: PatchField::Value(90.0), ..PageEdit::default() }, true),
        ("target 99.999", PageEdit { uptime_target: PatchField::Value(99.999), ..PageEdit::default() }, true),
        ("target 99.9991", PageEdit { uptime_target: PatchField::Value(99.9991), ..PageEdit::default() }, false),
        ("zone", PageEdit { timezone: PatchField::Value("Europe/Berlin".to_owned()), ..PageEdit::default() }, true),
        ("no zone", PageEdit { timezone: PatchField::Value("Mars/Base".to_owned()), ..PageEdit::default() }, false),
        ("no region", PageEdit { latency_regions: names(&[]), ..PageEdit::default() }, false),
        ("bad region", PageEdit { uptime_regions: names(&["mars"]), ..PageEdit::default() }, false),
    ];
    for (what, edit, fits) in table {
        assert_eq!(edit.validate(&page(), &GROUND).is_ok(), fits, "{what}");
    }
}

#[test]
fn every_region_is_the_same_as_all() {
    let all = Region::ALL.map(Region::name);
    let edit = PageEdit { uptime_regions: names(&all), latency_regions: names(&all), ..PageEdit::default() };
    let valid = edit.validate(&page(), &GROUND).unwrap();
    assert_eq!((valid.uptime_regions, valid.latency_regions), (None, Some(RegionSet::ALL)));
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

fn value(text: &str) -> PatchField<String> {
    PatchField::Value(text.to_owned())
}

#[test]
fn who_may_see_a_page_counts_its_changes() {
    let hidden = Page { password_hash: Some("$argon2id$".to_owned()), private: true, ..page() };
    let password = |length| PatchField::Value(PagePassword::new("x".repeat(length)));
    let private = |is_so| PageEdit { private: PatchField::Value(is_so), ..PageEdit::default() };
    let people = |list: &[&str]| PageEdit { allowed_people: names(list), ..PageEdit::default() };
    let raised = |edit: PageEdit, page: &Page| edit.validate(page, &GROUND).unwrap().access_revision;
    assert_eq!(raised(private(true), &page()), 1);
    assert_eq!(raised(private(true), &hidden), 0, "as it was");
    assert_eq!(raised(private(false), &hidden), 1);
    assert_eq!(raised(people(&["ann@example.com"]), &page()), 1);
    assert_eq!(raised(people(&[]), &page()), 0);
    let domains = PageEdit { allowed_domains: names(&["example.com"]), ..PageEdit::default() };
    assert_eq!(raised(domains, &page()), 1);
    for length in [1, 200] {
        assert_eq!(raised(PageEdit { password: password(length), ..PageEdit::default() }, &hidden), 1);
    }
    let cleared = PageEdit { password: PatchField::Null, ..PageEdit::default() };
    assert_eq!((raised(cleared.clone(), &hidden), raised(cleared.clone(), &page())), (1, 0));
    assert_eq!(cleared.validate(&hidden, &GROUND).unwrap().password_hash, None);
    assert_eq!(raised(PageEdit { theme: value("dark"), ..PageEdit::default() }, &hidden), 0);
    let wrong = PageEdit {
        password: password(201),
        private: PatchField::Null,
        allowed_people: names(&["ann"]),
        allowed_domains: names(&["localhost"]),
        theme: value("blue"),
        accent_color: value("red"),
        language: value("tlh"),
        slug: value("www"),
        ..PageEdit::default()
    };
    let faults = wrong.validate(&page(), &GROUND).unwrap_err();
    let fields: Vec<_> = faults.iter().map(|fault| fault.field.as_str()).collect();
    let all = ["slug", "password", "private", "allowedPeople", "allowedDomains", "theme", "accentColor"];
    assert_eq!(fields, [&all[..], &["language"]].concat());
}

#[test]
fn a_hostname_is_claimed_before_it_belongs_to_the_page() {
    let edit = |text: &str| PageEdit { custom_domain: value(text), ..PageEdit::default() };
    let claimed = edit(" Status.Shop.example. ").validate(&page(), &GROUND).unwrap();
    let claim = claimed.domain_claim.clone().unwrap();
    assert_eq!((claimed.custom_domain.as_ref(), claim.host.as_str()), (None, "status.shop.example"));
    assert_eq!(claim.record_name(), "_parallax-challenge.status.shop.example");
    assert_eq!(claim.record_value(), "parallax-domain-verification=t0ken");
    let later = PageEditContext { token: "other", now: Timestamp::from_millis(9), ..GROUND };
    assert_eq!(edit("status.shop.example").validate(&claimed, &later), Ok(claimed.clone()), "claimed already");
    let verified = Page { custom_domain: Some(claim.host), domain_claim: None, ..page() };
    assert_eq!(edit("status.shop.example").validate(&verified, &later), Ok(verified.clone()));
    let moving = edit("new.shop.example").validate(&verified, &later).unwrap();
    assert_eq!(moving.custom_domain, verified.custom_domain, "until the other one is verified");
    assert_eq!(moving.domain_claim.as_ref().map(|claim| claim.token.as_str()), Some("other"));
    let null = PageEdit { custom_domain: PatchField::Null, ..PageEdit::default() };
    let cleared = null.validate(&moving, &later).unwrap();
    assert_eq!((cleared.custom_domain, cleared.domain_claim), (None, None));
    for own in ["status.example", "shop.pages.example", "localhost"] {
        let faults = edit(own).validate(&page(), &GROUND).unwrap_err();
        assert_eq!(faults.iter().map(|it| it.field.as_str()).collect::<Vec<_>>(), ["customDomain"], "{own}");
    }
}
