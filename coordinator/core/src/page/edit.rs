//! What people send to make or change a page, settled into settings that keep every bound.

use super::Page;
use crate::given::Given;
use crate::place::RegionSet;
use crate::refusal::{Refusals, Rule};
use crate::text;

/// Characters that a page's name may have.
pub const MAX_NAME: usize = 80;
/// Characters that a page's address label may have.
pub const MAX_SLUG: usize = 63;
/// Characters that a page's line under the headline may have.
pub const MAX_DESCRIPTION: usize = 200;
/// Characters that a page's link may have.
pub const MAX_SUPPORT_URL: usize = 300;
/// Percent that a page may aim at.
pub const UPTIME_TARGET: std::ops::RangeInclusive<f64> = 90.0..=99.999;
/// Labels that can't be a page's, since they are the service's own or would be taken for it.
const RESERVED: [&str; 34] = [
    "about",
    "account",
    "admin",
    "api",
    "app",
    "assets",
    "auth",
    "billing",
    "blog",
    "cdn",
    "dashboard",
    "dev",
    "docs",
    "ftp",
    "help",
    "imap",
    "localhost",
    "login",
    "mail",
    "mcp",
    "ns1",
    "ns2",
    "p",
    "ping",
    "pop",
    "root",
    "security",
    "smtp",
    "static",
    "status",
    "support",
    "webmail",
    "wpad",
    "www",
];

/// The fields of a page that its API changes, as they were sent.
#[derive(Debug, Clone, Default)]
pub struct PageEdit {
    /// The name.
    pub name: Given<String>,
    /// One line under the headline.
    pub description: Given<String>,
    /// Link under the headline.
    pub support_url: Given<String>,
    /// Uptime target in percent.
    pub uptime_target: Given<f64>,
    /// IANA zone.
    pub timezone: Given<String>,
    /// Whether deploy markers are drawn for visitors.
    pub show_deploys: Given<bool>,
    /// Whether regions are shown under the strips.
    pub show_locations: Given<bool>,
    /// Regions for response times, by name.
    pub latency_regions: Given<Vec<String>>,
    /// Regions for up and down, by name.
    pub uptime_regions: Given<Vec<String>>,
}

impl PageEdit {
    /// The page that comes of what stands and what was sent.
    ///
    /// # Errors
    /// Every field that breaks a rule.
    pub fn settle(&self, page: &Page) -> Result<Page, Refusals> {
        let mut faults = Refusals::none();
        let name = self.name.required("name", Some(page.name.clone()), &mut faults, |name| read_name(name));
        let description =
            self.description.optional("description", page.description.clone(), &mut faults, |line| {
                text::optional_line(line, MAX_DESCRIPTION)
            });
        let support_url =
            self.support_url.optional("supportUrl", page.support_url.clone(), &mut faults, |url| {
                read_support_url(url).map(Some)
            });
        let uptime_target =
            self.uptime_target.optional("uptimeTarget", page.uptime_target, &mut faults, |target| {
                if UPTIME_TARGET.contains(target) {
                    Ok(Some(*target))
                } else {
                    Err("must be a number from 90 to 99.999".to_owned())
                }
            });
        let timezone = self.timezone.required("timezone", Some(page.timezone), &mut faults, |zone| {
            zone.trim().parse().map_err(|_| "must be an IANA time zone".to_owned())
        });
        let same = |flag: &bool| Ok(*flag);
        let show_deploys =
            self.show_deploys.required("showDeploys", Some(page.show_deploys), &mut faults, same);
        let show_locations =
            self.show_locations.required("showLocations", Some(page.show_locations), &mut faults, same);
        let latency_regions =
            self.latency_regions.optional("latencyLocations", page.latency_regions, &mut faults, |names| {
                text::regions(names).map(Some)
            });
        // Every region is the same as all of them, those added later included.
        let uptime_regions =
            self.uptime_regions.optional("uptimeRegions", page.uptime_regions, &mut faults, |names| {
                text::regions(names).map(|set| (set != RegionSet::ALL).then_some(set))
            });
        match (name, timezone, show_deploys, show_locations) {
            (Some(name), Some(timezone), Some(show_deploys), Some(show_locations)) if faults.is_empty() => {
                Ok(Page {
                    name,
                    description,
                    support_url,
                    uptime_target,
                    timezone,
                    show_deploys,
                    show_locations,
                    latency_regions,
                    uptime_regions,
                    ..page.clone()
                })
            }
            (_, _, _, _) => Err(faults),
        }
    }
}

/// A page's name.
///
/// # Errors
/// The rule that the text breaks.
pub fn read_name(name: &str) -> Result<String, Rule> {
    text::line(name, 1..=MAX_NAME)
}

/// A page's address label: 1 to 63 of a-z, 0-9 and inner hyphens, none that is reserved.
///
/// # Errors
/// The rule that the text breaks.
pub fn read_slug(slug: &str) -> Result<String, Rule> {
    let slug = slug.trim();
    let is_label = (1..=MAX_SLUG).contains(&slug.len())
        && slug.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        && !slug.starts_with('-')
        && !slug.ends_with('-');
    if !is_label {
        return Err("must be 1 to 63 characters of a-z, 0-9 and inner hyphens".to_owned());
    }
    // A label with hyphens in third and fourth place is read as an encoded international one (RFC 5891 4.2.3.1).
    if RESERVED.contains(&slug) || slug.get(2..4) == Some("--") {
        return Err("is reserved".to_owned());
    }
    Ok(slug.to_owned())
}

fn read_support_url(url: &str) -> Result<String, Rule> {
    let url = text::line(url, 0..=MAX_SUPPORT_URL)?;
    let starts = |scheme: &str| {
        url.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
            && url.len() > scheme.len()
    };
    if ["http://", "https://", "mailto:"].into_iter().any(starts) {
        Ok(url)
    } else {
        Err("must start with http://, https:// or mailto:".to_owned())
    }
}

#[cfg(test)]
mod tests;
