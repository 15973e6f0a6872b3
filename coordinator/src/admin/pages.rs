//! Page settings for the operator: fields by their API names, each as text.

use std::collections::BTreeMap;

use parallax_core::given::Given;
use parallax_core::page::access::Password;
use parallax_core::page::edit::PageEdit;
use parallax_core::place::{Region, RegionSet};
use parallax_core::refusal::Refusals;

use super::Fault;
use crate::service::Error;

/// Builds the edit that sets some fields and clears others.
///
/// # Errors
/// [`Fault`] with every field that is unknown, or both set and cleared.
pub(super) fn edit(
    set: &BTreeMap<String, String>,
    clear: &[String],
    password: Option<&Password>,
) -> Result<PageEdit, Fault> {
    let (mut edit, mut faults) = (PageEdit::default(), Refusals::none());
    let values = set.iter().map(|(field, text)| (field, Some(text.as_str())));
    for (field, text) in values.chain(clear.iter().map(|field| (field, None))) {
        if text.is_none() && set.contains_key(field) {
            faults.add(field.clone(), "must be set or cleared, not both");
        } else if !put(&mut edit, field, text) {
            faults.add(field.clone(), "is not a field of a page");
        }
    }
    if let Some(password) = password {
        if edit.password == Given::Null {
            faults.add("password", "must be set or cleared, not both");
        }
        edit.password = Given::Value(password.clone());
    }
    if faults.is_empty() { Ok(edit) } else { Err(Error::from(faults).into()) }
}

/// Returns the names of regions.
pub(super) fn names(regions: RegionSet) -> Vec<&'static str> {
    regions.iter().map(Region::name).collect()
}

/// Sets one field, or clears it if there is no text; returns false for an unknown field.
fn put(edit: &mut PageEdit, field: &str, text: Option<&str>) -> bool {
    match field {
        "name" => edit.name = words(text),
        "description" => edit.description = words(text),
        "supportUrl" => edit.support_url = words(text),
        "timezone" => edit.timezone = words(text),
        "slug" => edit.slug = words(text),
        "customDomain" => edit.custom_domain = words(text),
        "theme" => edit.theme = words(text),
        "accentColor" => edit.accent_color = words(text),
        "logo" => edit.logo = words(text),
        "favicon" => edit.favicon = words(text),
        "language" => edit.language = words(text),
        "uptimeTarget" => edit.uptime_target = number(text),
        "private" => edit.private = flag(text),
        "noindex" => edit.noindex = flag(text),
        "showDeploys" => edit.show_deploys = flag(text),
        "showLocations" => edit.show_locations = flag(text),
        "allowedPeople" => edit.allowed_people = list(text),
        "allowedDomains" => edit.allowed_domains = list(text),
        "latencyLocations" => edit.latency_regions = list(text),
        "uptimeRegions" => edit.uptime_regions = list(text),
        // A new password is passed separately, so that it is not printed.
        "password" if text.is_none() => edit.password = Given::Null,
        _ => return false,
    }
    true
}

fn words(text: Option<&str>) -> Given<String> {
    text.map_or(Given::Null, |text| Given::Value(text.to_owned()))
}

fn flag(text: Option<&str>) -> Given<bool> {
    match text {
        None => Given::Null,
        Some("true") => Given::Value(true),
        Some("false") => Given::Value(false),
        Some(_) => Given::Wrong("must be true or false".to_owned()),
    }
}

fn number(text: Option<&str>) -> Given<f64> {
    let read = |text: &str| text.trim().parse().ok().filter(|number: &f64| number.is_finite());
    text.map_or(Given::Null, |text| {
        read(text).map_or_else(|| Given::Wrong("must be a number".to_owned()), Given::Value)
    })
}

fn list(text: Option<&str>) -> Given<Vec<String>> {
    text.map_or(Given::Null, |text| {
        let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
        Given::Value(items.map(str::to_owned).collect())
    })
}
