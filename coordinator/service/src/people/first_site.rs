//! First page and monitor of an account, made in one step with its owner.

use std::net::IpAddr;

use parallax_core::check::CheckKind;
use parallax_core::check::edit::CheckEdit;
use parallax_core::event::EditKind;
use parallax_core::id::{AccountId, MonitorId, PageId};
use parallax_core::monitor::edit::MonitorEdit;
use parallax_core::monitor::{Monitor, MonitorSettings, NewMonitor};
use parallax_core::page::Page;
use parallax_core::page::edit::{read_name, read_slug};
use parallax_core::patch::PatchField;
use parallax_core::plan::{Plan, PlanLimitError};
use parallax_core::validation::ValidationErrors;
use parallax_store::{Batch, Expect, Op, Presence, VersionedValue};

use super::PeopleService;
use crate::destinations::default_destination::default_destination;
use crate::{ServiceError, ServiceResult};

/// Name and slug of the page that an installation begins with. Until something is on it, the first owner names it.
pub const PLACEHOLDER_PAGE: (&str, &str) = ("My services", "main");

/// Slugs that are tried with a number, before a page needs one that is typed.
const NUMBERED: std::ops::RangeInclusive<u32> = 2..=99;

/// The first site to monitor and its page, as entered.
#[derive(Debug, Clone, Default)]
pub struct FirstSite {
    /// Address of the site.
    pub url: String,
    /// Name of the page; empty for one from the address.
    pub page_name: String,
    /// Slug of the page; empty for one from the address.
    pub slug: String,
}

/// A first site, validated.
pub(super) struct ValidSite {
    settings: MonitorSettings,
    name: String,
    /// Slug that was typed; none for one from the address.
    slug: Option<String>,
    /// Word of the address that names the page.
    word: String,
}

/// Page on which the first monitor goes: the placeholder, or none for a new one.
pub(super) struct FirstPage(Option<VersionedValue<Page>>);

impl FirstSite {
    /// Settings of the monitor of its address, under the default name.
    pub(crate) fn settings(&self) -> Result<MonitorSettings, ValidationErrors> {
        let text = |text: &str| PatchField::Value(text.to_owned());
        let url = if self.url.trim().is_empty() { PatchField::Absent } else { text(self.url.trim()) };
        let edit = MonitorEdit {
            kind: text(CheckKind::Http.name()),
            check: CheckEdit { url, ..CheckEdit::default() },
            ..MonitorEdit::default()
        };
        edit.validate(None, "")
    }

    /// Validates the fields; faults have the names `url`, `pageName` and `slug`.
    pub(super) fn validate(&self, faults: &mut ValidationErrors) -> Option<ValidSite> {
        let settings = self.settings();
        if let Err(errors) = &settings {
            errors.iter().for_each(|error| faults.add(error.field.clone(), error.rule.clone()));
        }
        let word = settings.as_ref().map(|it| naming_word(&it.check.host())).unwrap_or_default();
        let name = match self.page_name.trim() {
            "" => Some(capitalized(&word)),
            typed => faults.record("pageName", read_name(typed)),
        };
        let slug = match self.slug.trim() {
            "" => Some(None),
            typed => faults.record("slug", read_slug(typed)).map(Some),
        };
        Some(ValidSite { settings: settings.ok()?, name: name?, slug: slug?, word })
    }
}

impl PeopleService {
    /// Returns where the first monitor of an account goes; none for an account that somebody uses already: it has a
    /// member, a monitor, or a page of its own.
    pub(super) fn first_page(&self, account: AccountId) -> ServiceResult<Option<FirstPage>> {
        let reader = self.context.store().reader();
        if !reader.members_of(account)?.is_empty() {
            return Ok(None);
        }
        let mut pages = reader.pages_of(account)?;
        let page = match (pages.pop(), pages.is_empty()) {
            (None, _) => return Ok(Some(FirstPage(None))),
            (Some(page), true) => page,
            (Some(_), false) => return Ok(None),
        };
        let is_placeholder = (page.value.name.as_str(), page.value.slug.as_str()) == PLACEHOLDER_PAGE;
        let is_blank = is_placeholder && reader.monitors_of(page.value.id)?.is_empty();
        Ok(is_blank.then_some(FirstPage(Some(page))))
    }

    /// Adds the page and the monitor to a batch that has the account as a precondition.
    pub(super) fn add_first_site(
        &self,
        (account, plan, email): (AccountId, Plan, &str),
        site: &ValidSite,
        place: FirstPage,
        batch: &mut Batch,
    ) -> ServiceResult<()> {
        let (now, reader) = (self.context.now(), self.context.store().reader());
        let limit = self.context.settings().limits.monitor_limit(plan, site.settings.check.kind())?;
        if limit == 0 {
            return Err(PlanLimitError::MonitorsFull { plan, limit }.into());
        }
        let own = place.0.as_ref().map(|page| page.value.id);
        // Checked with the other fields, and again here: another page may have taken it meanwhile.
        if let Some(rule) = self.taken_slug_rule(site, &place)? {
            return Err(ValidationErrors::single("slug", rule).into());
        }
        let slug = match &site.slug {
            Some(typed) => typed.clone(),
            None => {
                let free = self.free_slug(&site.word, own)?;
                free.ok_or_else(|| ServiceError::from(ValidationErrors::single("slug", "is required")))?
            }
        };
        let page = match place.0 {
            Some(VersionedValue { revision, value }) => {
                batch.expect(Expect::Page(value.id, Presence::At(revision)));
                batch.event(self.context.page_event(value.id, EditKind::Changed));
                Page { name: site.name.clone(), slug, ..value }
            }
            None => {
                let id = PageId::new(now, rand::random());
                batch.expect(Expect::Page(id, Presence::Absent));
                batch.event(self.context.page_event(id, EditKind::Created));
                Page { name: site.name.clone(), ..Page::blank(id, account, slug, now) }
            }
        };
        // Before everything that is on it: the store drops records of an unknown page.
        batch.write(page.clone());
        if own.is_none() {
            batch.write(default_destination(page.id, email.to_owned(), now));
        }
        let slot = reader.next_slot()?;
        let new = NewMonitor { id: MonitorId::new(now, rand::random()), page: page.id, slot, position: 0, now };
        batch
            .expect(Expect::NextSlot(slot))
            .expect(Expect::MonitorsBelow(account, limit))
            .write(Op::SetNextSlot(slot.wrapping_add(1)))
            .write(Monitor::new(new, site.settings.clone()))
            .event(self.context.monitor_event(page.id, new.id, EditKind::Created));
        Ok(())
    }

    /// Returns the rule that a typed slug breaks because another page has it, with one that is free.
    pub(super) fn taken_slug_rule(&self, site: &ValidSite, place: &FirstPage) -> ServiceResult<Option<String>> {
        let own = place.0.as_ref().map(|page| page.value.id);
        let Some(typed) = &site.slug else { return Ok(None) };
        if self.is_free(typed, own)? {
            return Ok(None);
        }
        let free = self.free_slug(typed, own)?;
        Ok(Some(free.map_or_else(|| "is taken".to_owned(), |free| format!("is taken. {free} is free"))))
    }

    /// Returns a slug for a page that is to be named after a word; none if too many are taken.
    fn free_slug(&self, word: &str, own: Option<PageId>) -> ServiceResult<Option<String>> {
        for word in [word, FALLBACK] {
            let numbered = NUMBERED.map(|number| format!("{word}-{number}"));
            for slug in [word.to_owned(), format!("{word}-status")].into_iter().chain(numbered) {
                if read_slug(&slug).is_ok() && self.is_free(&slug, own)? {
                    return Ok(Some(slug));
                }
            }
        }
        Ok(None)
    }

    fn is_free(&self, slug: &str, own: Option<PageId>) -> ServiceResult<bool> {
        let taken = self.context.store().reader().page_by_slug(slug)?;
        Ok(taken.is_none_or(|page| Some(page.value.id) == own))
    }
}

/// Word for an address that names nothing.
const FALLBACK: &str = "status";

/// Returns the label of a host that names its site: the first one but `www`.
fn naming_word(host: &str) -> String {
    let is_address = host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok();
    let label = host.split('.').find(|label| *label != "www" && !label.is_empty());
    label.filter(|_| !is_address).unwrap_or(FALLBACK).to_lowercase()
}

fn capitalized(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_named_after_its_site() {
        for (host, word) in [
            ("www.northwind.example", "northwind"),
            ("shop.example", "shop"),
            ("localhost", "localhost"),
            ("192.0.2.1", "status"),
            ("[2001:db8::1]", "status"),
            ("www", "status"),
            ("", "status"),
        ] {
            assert_eq!(naming_word(host), word, "{host}");
        }
        assert_eq!(capitalized("northwind"), "Northwind");
    }

    #[test]
    fn each_field_has_its_own_fault() {
        let mut faults = ValidationErrors::new();
        let site = FirstSite { url: String::new(), page_name: "x".repeat(500), slug: "No Slug".to_owned() };
        assert!(site.validate(&mut faults).is_none());
        let fields: Vec<&str> = faults.iter().map(|fault| fault.field.as_str()).collect();
        assert_eq!(fields, ["url", "pageName", "slug"]);
    }
}
