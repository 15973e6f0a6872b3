//! Pages: access by API keys, URLs, and the overall status.

pub mod clearing;
mod editing;
pub mod making;

use parallax_core::board;
use parallax_core::event::{Edited, Event, Status, What};
use parallax_core::headline::{self, Claim, Indicator, STALE};
use parallax_core::id::{AccountId, PageId};
use parallax_core::incident::automatic::title_of;
use parallax_core::incident::{Impact, Kind, MAX_UNFINISHED};
use parallax_core::page::Page;
use parallax_core::page::edit::{read_name, read_slug};
use parallax_core::page::look::PictureUse;
use parallax_core::place::{Region, RegionSet};
use parallax_core::refusal::Refusals;
use parallax_core::time::{DAY, Timestamp};
use parallax_core::window::Window;

use super::destinations::owner::of_owner;
use super::gate::Admitted;
use super::incidents;
use super::monitors::Shown;
use super::{Caller, Error, Result, Service};
use crate::storage::{Batch, Expect, Is, Versioned};

/// Overall status of a page, for its visitors.
#[derive(Debug, Clone)]
pub struct Overview {
    /// The page.
    pub page: Page,
    /// Machine-readable overall status.
    pub indicator: Indicator,
    /// The same as a headline for people.
    pub headline: String,
    /// Its monitors in page order.
    pub monitors: Vec<Shown>,
    /// Its open incidents, newest first.
    pub incidents: Vec<incidents::Shown>,
    /// Maintenance in progress, or planned within the next week, soonest first.
    pub maintenance: Vec<incidents::Shown>,
    /// Maintenance planned for later than that, soonest first.
    pub later: Vec<incidents::Shown>,
    /// Regions with an agent in service.
    pub regions: RegionSet,
    /// True if the shown statuses are out of date: there are monitors to check, and no agent to check them.
    pub is_stale: bool,
}

impl Overview {
    /// Returns the end of the newest check that contributes to the overview.
    pub fn checked(&self) -> Option<Timestamp> {
        board::newest_check(|| self.monitors.iter().map(|shown| (&shown.monitor, &shown.view)))
    }

    /// Returns the regions in service that checked any of the monitors in the last 24 hours.
    pub fn seen_from(&self) -> RegionSet {
        let ours = || self.monitors.iter().filter(|shown| board::is_probed(&shown.monitor));
        let is_seen = |region: &Region| ours().any(|shown| shown.figure.seen.contains(*region));
        self.regions.iter().filter(is_seen).collect()
    }
}

impl Service {
    /// Returns a page that the caller's key can access.
    ///
    /// # Errors
    /// [`Error::NotFound`] for any other page.
    pub fn page(&self, caller: &Caller, id: PageId) -> Result<Page> {
        self.reached(caller, id).map(|page| page.value)
    }

    /// Returns the id of the page with that slug, if the key can access it.
    ///
    /// # Errors
    /// [`Error::Internal`] if the store can't be read.
    pub fn page_with_label(&self, caller: &Caller, slug: &str) -> Result<Option<PageId>> {
        let page = self.store().reader().page_by_slug(slug)?;
        Ok(page.filter(|page| caller.key.reaches(&page.value)).map(|page| page.value.id))
    }

    /// Lists every page that the caller's key can access, oldest first.
    ///
    /// # Errors
    /// [`Error::Internal`] if the store can't be read.
    pub async fn pages(&self, caller: &Caller) -> Result<Vec<Page>> {
        let mut pages = self.pages_of(caller.key.account).await?;
        pages.retain(|page| caller.key.reaches(page));
        Ok(pages)
    }

    /// Returns the overall status of a page.
    ///
    /// # Errors
    /// [`Error::NotFound`] for a page that the key can't access.
    pub async fn overview(&self, caller: &Caller, id: PageId) -> Result<Overview> {
        let page = self.page(caller, id)?;
        self.overview_of(page).await
    }

    /// Returns the overall status of a page, for its visitors.
    ///
    /// # Errors
    /// [`Error::Internal`] if the store can't be read.
    pub async fn public_overview(&self, page: &Admitted) -> Result<Overview> {
        self.overview_of(page.page().clone()).await
    }

    /// Returns the public URL of the page.
    pub fn page_url(&self, page: &Page) -> String {
        let settings = self.settings();
        page.address(&settings.base_url, settings.root_domain.as_deref())
    }

    /// Returns the public URL of a picture of the page, if it has one.
    pub fn picture_url(&self, page: &Page, usage: PictureUse) -> Option<String> {
        let picture = page.look.picture(usage)?;
        Some(format!("{}/{}/{}", self.page_url(page), usage.name(), picture.hex()))
    }

    /// Creates a page; called by the operator.
    ///
    /// # Errors
    /// [`Error::NotFound`] for an account that does not exist, [`Error::Invalid`] for an invalid name or an invalid,
    /// reserved or taken slug.
    pub async fn create_page(&self, account: AccountId, name: &str, slug: &str) -> Result<Page> {
        let mut faults = Refusals::none();
        let name = faults.take("name", read_name(name));
        let slug = faults.take("slug", read_slug(slug));
        let (Some(name), Some(slug)) = (name, slug) else { return Err(faults.into()) };
        let page = making::blank(account, name, slug, self.now());
        let page = &page;
        self.change(page.id.to_u128(), || async move {
            let owner = self.store().reader().account(account)?.ok_or(Error::NotFound)?.value;
            if self.store().reader().page_by_slug(&page.slug)?.is_some() {
                return Err(Refusals::one("slug", "is taken").into());
            }
            let mut batch = Batch::new();
            batch.expect(Expect::Account(account, Is::Present)).expect(Expect::Page(page.id, Is::Absent));
            batch.write(page.clone()).write(of_owner(page.id, owner.email, self.now()));
            batch.event(self.page_event(page.id, Edited::Created));
            Ok((page.clone(), Some(batch)))
        })
        .await
    }

    /// Lists an account's pages, oldest first; called by the operator.
    ///
    /// # Errors
    /// [`Error::Internal`] if the store can't be read.
    pub async fn pages_of(&self, account: AccountId) -> Result<Vec<Page>> {
        let pages = self.store().read(move |store| store.pages_of(account)).await?;
        let mut pages: Vec<Page> = pages.into_iter().map(|page| page.value).collect();
        pages.sort_by_key(|page| (page.created_at, page.id));
        Ok(pages)
    }

    pub(super) fn reached(&self, caller: &Caller, id: PageId) -> Result<Versioned<Page>> {
        let page = self.store().reader().page(id)?;
        page.filter(|page| caller.key.reaches(&page.value)).ok_or(Error::NotFound)
    }

    async fn overview_of(&self, page: Page) -> Result<Overview> {
        let monitors = self.shown_on(&page).await?;
        let now = self.now();
        let open = self.open_on(page.id, MAX_UNFINISHED).await?;
        let Told { incidents, maintenance, later } = told_of(open, now);
        let running: Vec<Window> = maintenance
            .iter()
            .filter_map(|shown| Window::of(&shown.incident))
            .filter(|window| window.span.contains(now))
            .collect();
        let is_covered = |id| running.iter().any(|window| window.covers(id));
        let regions = self.regions_in_service();
        let looked_at = monitors.iter().map(|shown| (&shown.monitor, &shown.view));
        let is_stale = board::none_looks(regions, looked_at, now);
        // Without agents, monitors that were up are no longer known to be. Monitors that were down stay down, and
        // monitors that report by ping are unaffected.
        let is_known = |shown: &Shown| {
            !is_stale || shown.view.status == Status::Down || !board::is_probed(&shown.monitor)
        };
        let uncovered = monitors.iter().filter(|shown| !is_covered(shown.monitor.id));
        let statuses = uncovered.clone().filter(|shown| is_known(shown)).map(|shown| shown.view.status);
        let told = incidents.iter().map(|shown| shown.incident.impact).max();
        let told = told.filter(|worst| *worst > Impact::None);
        let seen = Indicator::of(None, statuses.clone(), !running.is_empty());
        let indicator = if told.is_some() { Indicator::of(told, statuses, false) } else { seen };
        let claims = incidents.iter().map(|shown| Claim::of(&shown.incident, &shown.monitors));
        let quoted = headline::quoted(claims, seen);
        let headline = match quoted.and_then(|at| incidents.get(at)) {
            Some(shown) => shown.incident.title.clone(),
            None if is_stale && seen == Indicator::Unknown => STALE.to_owned(),
            None => {
                // For an automatic incident, the headline names the monitors that are down now.
                let down = uncovered.filter(|shown| told.is_some() && shown.view.status == Status::Down);
                let down: Vec<_> =
                    down.map(|shown| (shown.monitor.name.as_str(), shown.view.down_from)).collect();
                title_of(&down, page.language).unwrap_or_else(|| seen.headline().to_owned())
            }
        };
        Ok(Overview { page, indicator, headline, monitors, incidents, maintenance, later, regions, is_stale })
    }

    pub(super) fn page_event(&self, id: PageId, edited: Edited) -> Event {
        Event { at: self.now(), page: Some(id), monitor: None, what: What::PageEdited(edited) }
    }
}

/// A page's open incidents and windows, by section.
pub(super) struct Told {
    /// Incidents, newest first.
    pub(super) incidents: Vec<incidents::Shown>,
    /// Maintenance in progress or within the next week, soonest first.
    pub(super) maintenance: Vec<incidents::Shown>,
    /// Maintenance planned for later than that, soonest first.
    pub(super) later: Vec<incidents::Shown>,
}

/// Splits open incidents and windows, given newest first, into sections.
pub(super) fn told_of(open: Vec<incidents::Shown>, now: Timestamp) -> Told {
    let (incidents, mut maintenance): (Vec<_>, Vec<_>) =
        open.into_iter().partition(|shown| shown.incident.kind == Kind::Incident);
    maintenance.reverse();
    let is_near = |shown: &incidents::Shown| shown.incident.started_at <= now + 7 * DAY;
    let (maintenance, later) = maintenance.into_iter().partition(is_near);
    Told { incidents, maintenance, later }
}

impl Caller {
    /// Checks that the caller has write access.
    ///
    /// # Errors
    /// [`Error::ReadOnly`] if not.
    pub fn writes(&self) -> Result<()> {
        if self.key.access.writes() { Ok(()) } else { Err(Error::ReadOnly) }
    }
}
