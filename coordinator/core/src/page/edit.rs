//! Validation of a page as sent in a request.

use super::Page;
use super::access::{self, AllowedVisitors, PagePassword};
use super::branding::{Branding, Color, Language, Theme};
use super::domain::{self, DomainClaim};
use crate::patch::PatchField;
use crate::text;
use crate::time::Timestamp;
use crate::validation::{Rule, ValidationErrors};
use crate::vantage::RegionSet;

/// Maximum length of a page's name, in characters.
pub const MAX_NAME: usize = 80;
/// Maximum length of a slug, in characters.
pub const MAX_SLUG: usize = 63;
/// Maximum length of a page's description, in characters.
pub const MAX_DESCRIPTION: usize = 200;
/// Maximum length of a page's support URL, in characters.
pub const MAX_SUPPORT_URL: usize = 300;
/// Allowed uptime targets, in percent.
pub const UPTIME_TARGET: std::ops::RangeInclusive<f64> = 90.0..=99.999;
/// Slugs that no page may have: they are the service's own or would be mistaken for it.
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

/// The editable fields of a page, as sent.
#[derive(Debug, Clone, Default)]
pub struct PageEdit {
    /// The name.
    pub name: PatchField<String>,
    /// Line under the headline.
    pub description: PatchField<String>,
    /// Link under the headline.
    pub support_url: PatchField<String>,
    /// Uptime target in percent.
    pub uptime_target: PatchField<f64>,
    /// IANA zone.
    pub timezone: PatchField<String>,
    /// True to show deploy markers to visitors.
    pub show_deploys: PatchField<bool>,
    /// True to show the regions under the uptime bars.
    pub show_locations: PatchField<bool>,
    /// Regions for response times, by name.
    pub latency_regions: PatchField<Vec<String>>,
    /// Regions for up and down, by name.
    pub uptime_regions: PatchField<Vec<String>>,
    /// The slug.
    pub slug: PatchField<String>,
    /// The owner's own hostname.
    pub custom_domain: PatchField<String>,
    /// The visitors' password.
    pub password: PatchField<PagePassword>,
    /// True to restrict the page to allowed people.
    pub private: PatchField<bool>,
    /// Email addresses that may see it while it is private.
    pub allowed_people: PatchField<Vec<String>>,
    /// Email domains that may see it while it is private.
    pub allowed_domains: PatchField<Vec<String>>,
    /// True to ask search engines not to index it.
    pub noindex: PatchField<bool>,
    /// Light, dark or automatic.
    pub theme: PatchField<String>,
    /// Accent colour, as of links.
    pub accent_color: PatchField<String>,
    /// Logo as a `data:` URL. The store of pictures decodes it.
    pub logo: PatchField<String>,
    /// Favicon as a `data:` URL. The store of pictures decodes it.
    pub favicon: PatchField<String>,
    /// Language of the service's own texts.
    pub language: PatchField<String>,
    /// Errors for fields that were sent and can't be edited.
    pub read_only_errors: ValidationErrors,
}

impl PageEdit {
    /// Returns true if the page's slug or custom domain was sent.
    pub fn changes_address(&self) -> bool {
        self.slug != PatchField::Absent || self.custom_domain != PatchField::Absent
    }

    /// Returns true if something was sent that decides who may see the page.
    pub fn changes_access(&self) -> bool {
        self.password != PatchField::Absent
            || self.private != PatchField::Absent
            || self.allowed_people != PatchField::Absent
            || self.allowed_domains != PatchField::Absent
    }
}

/// Context for validating an edit, besides the page.
#[derive(Debug, Clone, Copy)]
pub struct PageEditContext<'a> {
    /// The service's own hostname.
    pub own_host: Option<&'a str>,
    /// Domain under which pages have their slugs, if configured.
    pub root_domain: Option<&'a str>,
    /// Token for a new claim of a hostname: random, used once.
    pub token: &'a str,
    /// Current time.
    pub now: Timestamp,
}

impl PageEdit {
    /// Validates an edit of a page, except for a new password's hash and for pictures, which the caller
    /// makes. A change of the access rules increments `access_revision`.
    ///
    /// # Errors
    /// Every field that breaks a rule.
    pub fn validate(&self, page: &Page, ground: &PageEditContext<'_>) -> Result<Page, ValidationErrors> {
        let mut faults = self.read_only_errors.clone();
        let name = self.name.required("name", Some(page.name.clone()), &mut faults, |name| read_name(name));
        let description = self.description.optional("description", page.description.clone(), &mut faults, |line| {
            text::optional_line(line, MAX_DESCRIPTION)
        });
        let support_url = self
            .support_url
            .optional("supportUrl", page.support_url.clone(), &mut faults, |url| read_support_url(url).map(Some));
        let uptime_target = self.uptime_target.optional("uptimeTarget", page.uptime_target, &mut faults, |target| {
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
        let show_deploys = self.show_deploys.required("showDeploys", Some(page.show_deploys), &mut faults, same);
        let show_locations =
            self.show_locations.required("showLocations", Some(page.show_locations), &mut faults, same);
        let latency_regions =
            self.latency_regions.optional("latencyLocations", page.latency_regions, &mut faults, |names| {
                text::regions(names).map(Some)
            });
        // A list of every region means all of them, including those added later.
        let uptime_regions = self.uptime_regions.optional("uptimeRegions", page.uptime_regions, &mut faults, |names| {
            text::regions(names).map(|set| (set != RegionSet::ALL).then_some(set))
        });
        let slug = self.slug.required("slug", Some(page.slug.clone()), &mut faults, |slug| read_slug(slug));
        let (custom_domain, domain_claim) = self.custom_domain(page, ground, &mut faults);
        let (password, private, allowed) = self.access(page, &mut faults);
        let noindex = self.noindex.required("noindex", Some(page.noindex), &mut faults, same);
        let look = self.branding(page, &mut faults);
        let tag = |tag: &String| Language::read(tag);
        let language = self.language.defaulted("language", Some(page.language), Language::default(), &mut faults, tag);
        let flags = (show_deploys, show_locations, private, noindex);
        match (name, timezone, slug, language, flags) {
            (
                Some(name),
                Some(timezone),
                Some(slug),
                Some(language),
                (Some(show_deploys), Some(show_locations), Some(private), Some(noindex)),
            ) if faults.is_empty() => {
                let is_other = (private, &allowed) != (page.private, &page.allowed_visitors)
                    || password != page.password_hash
                    || matches!(self.password, PatchField::Value(_));
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
                    slug,
                    custom_domain,
                    domain_claim,
                    password_hash: password,
                    private,
                    allowed_visitors: allowed,
                    access_revision: page.access_revision.wrapping_add(u32::from(is_other)),
                    noindex,
                    branding: look,
                    language,
                    ..page.clone()
                })
            }
            (_, _, _, _, _) => Err(faults),
        }
    }

    /// The verified hostname and the claimed one. Null removes both. A hostname that is verified or claimed
    /// already is not claimed again. A new one leaves the verified one in place until it is verified itself.
    fn custom_domain(
        &self,
        page: &Page,
        ground: &PageEditContext<'_>,
        faults: &mut ValidationErrors,
    ) -> (Option<String>, Option<DomainClaim>) {
        let unchanged = || (page.custom_domain.clone(), page.domain_claim.clone());
        let read = |text: &String| domain::read_custom_domain(text, ground.own_host, ground.root_domain).map(Some);
        if self.custom_domain == PatchField::Absent {
            return unchanged();
        }
        match self.custom_domain.optional("customDomain", None, faults, read) {
            None => (None, None),
            Some(host) if page.custom_domain.as_ref() == Some(&host) => (Some(host), None),
            Some(host) if page.domain_claim.as_ref().is_some_and(|claim| claim.host == host) => unchanged(),
            Some(host) => {
                let claim = DomainClaim::new(host, ground.token.to_owned(), ground.now);
                (page.custom_domain.clone(), Some(claim))
            }
        }
    }

    /// The unchanged password hash, the privacy flag, and the people allowed.
    fn access(&self, page: &Page, faults: &mut ValidationErrors) -> (Option<String>, Option<bool>, AllowedVisitors) {
        let stays = page.password_hash.clone();
        let password =
            self.password.optional("password", stays.clone(), faults, |password| password.validate().map(|()| stays));
        let private = self.private.required("private", Some(page.private), faults, |flag| Ok(*flag));
        let before = &page.allowed_visitors;
        let list = |read: Result<Vec<String>, Rule>| read.map(Some);
        let people = self
            .allowed_people
            .optional("allowedPeople", Some(before.people.clone()), faults, |people| list(access::read_emails(people)));
        let domains =
            self.allowed_domains.optional("allowedDomains", Some(before.domains.clone()), faults, |domains| {
                list(access::read_email_domains(domains))
            });
        let allowed = AllowedVisitors { people: people.unwrap_or_default(), domains: domains.unwrap_or_default() };
        (password, private, allowed)
    }

    /// Theme and accent colour; pictures stay unchanged.
    fn branding(&self, page: &Page, faults: &mut ValidationErrors) -> Branding {
        let before = page.branding.clone();
        let theme =
            self.theme.defaulted("theme", Some(before.theme), Theme::default(), faults, |name| Theme::read(name));
        let accent =
            self.accent_color.optional("accentColor", before.accent, faults, |color| Color::read(color).map(Some));
        Branding { theme: theme.unwrap_or(before.theme), accent, ..before }
    }
}

/// Validates a page's name.
///
/// # Errors
/// The rule that the text breaks.
pub fn read_name(name: &str) -> Result<String, Rule> {
    text::line(name, 1..=MAX_NAME)
}

/// Validates a slug: 1 to 63 of a-z, 0-9 and inner hyphens, and not reserved.
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
    // Hyphens in third and fourth position mark an encoded international label (RFC 5891 4.2.3.1).
    if RESERVED.contains(&slug) || slug.get(2..4) == Some("--") {
        return Err("is reserved".to_owned());
    }
    Ok(slug.to_owned())
}

fn read_support_url(url: &str) -> Result<String, Rule> {
    let url = text::line(url, 0..=MAX_SUPPORT_URL)?;
    let starts = |scheme: &str| {
        url.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme)) && url.len() > scheme.len()
    };
    if ["http://", "https://", "mailto:"].into_iter().any(starts) {
        Ok(url)
    } else {
        Err("must start with http://, https:// or mailto:".to_owned())
    }
}

#[cfg(test)]
mod tests;
