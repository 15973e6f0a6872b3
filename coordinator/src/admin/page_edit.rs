//! Page settings for the operator: fields by their API names, each as text.

use std::collections::BTreeMap;

use parallax_core::page::access::PagePassword;
use parallax_core::page::edit::PageEdit;
use parallax_core::patch::PatchField;
use parallax_core::validation::ValidationErrors;
use parallax_core::vantage::{Region, RegionSet};
use parallax_service::ServiceError;

use super::CommandError;

/// Builds the edit that sets some fields and clears others.
///
/// # Errors
/// [`CommandError`] with every field that is unknown, or both set and cleared.
pub(super) fn edit(
    set: &BTreeMap<String, String>,
    clear: &[String],
    password: Option<&PagePassword>,
) -> Result<PageEdit, CommandError> {
    let (mut edit, mut faults) = (PageEdit::default(), ValidationErrors::new());
    let values = set.iter().map(|(field, text)| (field, Some(text.as_str())));
    for (field, text) in values.chain(clear.iter().map(|field| (field, None))) {
        if text.is_none() && set.contains_key(field) {
            faults.add(field.clone(), "must be set or cleared, not both");
        } else if !set_field(&mut edit, field, text) {
            faults.add(field.clone(), "is not a field of a page");
        }
    }
    if let Some(password) = password {
        if edit.password == PatchField::Null {
            faults.add("password", "must be set or cleared, not both");
        }
        edit.password = PatchField::Value(password.clone());
    }
    if faults.is_empty() { Ok(edit) } else { Err(ServiceError::from(faults).into()) }
}

/// Returns the names of regions.
pub(super) fn names(regions: RegionSet) -> Vec<&'static str> {
    regions.iter().map(Region::name).collect()
}

/// Sets one field, or clears it if there is no text; returns false for an unknown field.
fn set_field(edit: &mut PageEdit, field: &str, text: Option<&str>) -> bool {
    match field {
        "name" => edit.name = text_field(text),
        "description" => edit.description = text_field(text),
        "supportUrl" => edit.support_url = text_field(text),
        "timezone" => edit.timezone = text_field(text),
        "slug" => edit.slug = text_field(text),
        "customDomain" => edit.custom_domain = text_field(text),
        "theme" => edit.theme = text_field(text),
        "accentColor" => edit.accent_color = text_field(text),
        "logo" => edit.logo = text_field(text),
        "favicon" => edit.favicon = text_field(text),
        "language" => edit.language = text_field(text),
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
        "password" if text.is_none() => edit.password = PatchField::Null,
        _ => return false,
    }
    true
}

fn text_field(text: Option<&str>) -> PatchField<String> {
    text.map_or(PatchField::Null, |text| PatchField::Value(text.to_owned()))
}

fn flag(text: Option<&str>) -> PatchField<bool> {
    match text {
        None => PatchField::Null,
        Some("true") => PatchField::Value(true),
        Some("false") => PatchField::Value(false),
        Some(_) => PatchField::Invalid("must be true or false".to_owned()),
    }
}

fn number(text: Option<&str>) -> PatchField<f64> {
    let read = |text: &str| text.trim().parse().ok().filter(|number: &f64| number.is_finite());
    text.map_or(PatchField::Null, |text| {
        read(text).map_or_else(|| PatchField::Invalid("must be a number".to_owned()), PatchField::Value)
    })
}

fn list(text: Option<&str>) -> PatchField<Vec<String>> {
    text.map_or(PatchField::Null, |text| {
        let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
        PatchField::Value(items.map(str::to_owned).collect())
    })
}
