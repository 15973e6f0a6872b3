//! The page view: a page with its past as visitors see it, from which public pages are rendered.

mod past;

use std::collections::BTreeMap;

use chrono::{Datelike, NaiveDate};
use parallax_core::board::{BUDGET_DAYS, Board, DAYS, Notice, Past, Range, Shown, Stretch};
use parallax_core::event::What;
use parallax_core::id::{IncidentId, MonitorId, PageId};
use parallax_core::incident::Incident;
use parallax_core::outage::{Outage, Outages};
use parallax_core::page::Page;
use parallax_core::place::RegionSet;
use parallax_core::rollup::{day_of, start_of_day};
use parallax_core::time::{DAY, Timestamp};
use parallax_core::window::Window;

use tokio::sync::watch;

use super::gate::Admitted;
use super::incidents::listed::{Cut, Newest, cut};
use super::pages::{Told, told_of};
use super::{Error, Result, Service, incidents, monitors};
use crate::storage::Read;

/// Maximum incidents and windows in a list.
const LISTED: usize = 200;
/// Limits per incident in such a list: a card shows the newest five updates.
const SAID: Newest = Newest { updates: 5, bytes: 16 * 1024 };
/// Incidents that began before such a list and lasted into it: maximum listed, maximum scanned, and how long before
/// the list they may have begun.
const LASTED: usize = 50;
const LOOKED: usize = 600;
const LONGEST: i64 = 90 * DAY;
/// Number of points in a page's charts.
const PARTS: usize = 48;
/// Maximum outages on a monitor's page.
const OUTAGES: usize = 50;
/// Maximum events scanned in one search for outages.
const SCANNED: usize = 4096;
/// Events read per query.
const READ_AT_ONCE: usize = 512;
/// Maximum deploy markers shown.
const DEPLOYS: usize = 50;

/// A monitor's detail view: a longer chart, its outages and its incidents.
#[derive(Debug, Clone)]
pub struct Closer {
    /// The page it is on.
    pub page: Page,
    /// Time at which the view was computed.
    pub now: Timestamp,
    /// The monitor.
    pub shown: Shown,
    /// Period of its uptime bars and its chart.
    pub range: Range,
    /// Time at which the default range changes, if the monitor's age determines it.
    pub range_until: Option<Timestamp>,
    /// Its open incidents, newest first, followed by its current and upcoming maintenance, soonest first.
    pub open: Vec<Notice>,
    /// Its incidents and windows of the last [`DAYS`], including those that lasted into that period, newest first.
    pub notices: Vec<Notice>,
    /// Its outages, newest first.
    pub outages: Vec<Outage>,
    /// Deploy markers, newest first; empty if the page does not show them.
    pub deploys: Vec<parallax_core::deploy::Deploy>,
    /// Regions with an agent in service.
    pub regions: RegionSet,
}

/// Pages that changed since a position in the journal.
#[derive(Debug, Default)]
pub struct Changes {
    /// Each page with the last event that concerns it.
    pub pages: BTreeMap<PageId, u64>,
    /// The last event that was read.
    pub upto: u64,
    /// True if that was the newest event.
    pub is_end: bool,
}

impl Service {
    /// Watches the number of the newest event.
    pub fn news(&self) -> watch::Receiver<u64> {
        self.store().events_seen()
    }

    /// Lists pages that changed after that event, up to one read's length. Rounds without a state change don't count.
    ///
    /// # Errors
    /// [`Error::Internal`] if the store can't be read.
    pub async fn page_changes(&self, after: u64) -> Result<Changes> {
        let read = self.store().read(move |store| store.events_after(after, READ_AT_ONCE)).await?;
        let mut changes = Changes { upto: after, is_end: read.len() < READ_AT_ONCE, ..Changes::default() };
        for event in read {
            changes.upto = event.seq;
            let Some(page) = event.event.page else { continue };
            if !matches!(event.event.what, What::Round(_)) {
                changes.pages.insert(page, event.seq);
            }
        }
        Ok(changes)
    }

    /// Builds the page view with uptime bars of the chosen range, or of the default range for its age.
    ///
    /// # Errors
    /// [`Error::Internal`] if the store can't be read.
    pub async fn board(&self, page: &Admitted, chosen: Option<Range>) -> Result<Board> {
        let overview = self.public_overview(page).await?;
        let now = self.now();
        let page = &overview.page;
        // The oldest monitor determines the age of the data, however old the page is.
        let made = overview.monitors.iter().map(|shown| shown.monitor.created_at).min();
        let (range, range_until) = range_of(chosen, made.unwrap_or(page.created_at), now);
        let windows: Vec<Window> = overview
            .maintenance
            .iter()
            .filter_map(|shown| Window::of(&shown.incident))
            .filter(|window| window.span.contains(now))
            .collect();
        let is_covered = |id| windows.iter().any(|window| window.covers(id));
        let covered: Vec<bool> = overview.monitors.iter().map(|shown| is_covered(shown.monitor.id)).collect();
        let stretch = Stretch { from: now - DAY, to: now, parts: PARTS };
        let pasts = self.pasts(page, &overview.monitors, stretch, range).await?;
        let seen = overview.monitors.into_iter().zip(pasts).zip(covered);
        let monitors = seen.map(|((shown, past), covered)| drawn(shown, past, covered)).collect();
        let mut past = self.notices(page, now - DAYS as i64 * DAY, now + 1).await?;
        past.retain(|notice| !notice.incident.is_open());
        Ok(Board {
            now,
            range,
            range_until,
            is_chosen: chosen.is_some(),
            indicator: overview.indicator,
            monitors,
            incidents: overview.incidents.into_iter().map(notice).collect(),
            maintenance: overview.maintenance.into_iter().map(notice).collect(),
            later: overview.later.into_iter().map(notice).collect(),
            past,
            deploys: self.markers(page).await?,
            regions: overview.regions,
            page: overview.page,
        })
    }

    /// Builds the detail view of one of a page's monitors, with uptime bars and a chart of the chosen range, or of
    /// the default range for its age.
    ///
    /// # Errors
    /// [`Error::NotFound`] for a monitor that is not on the page.
    pub async fn closer(&self, page: &Admitted, id: MonitorId, chosen: Option<Range>) -> Result<Closer> {
        let page = page.page().clone();
        let monitor = self.monitor_on(&page, id)?.value;
        let now = self.now();
        let (range, range_until) = range_of(chosen, monitor.created_at, now);
        let shown = self.with_state(&page, vec![monitor]).await?;
        let open = self.open_on(page.id, parallax_core::incident::MAX_UNFINISHED).await?;
        let covers = |window: Window| window.span.contains(now) && window.covers(id);
        let covered = open.iter().filter_map(|shown| Window::of(&shown.incident)).any(covers);
        let length = range.days() as i64 * DAY;
        let stretch = Stretch { from: now - length, to: now, parts: range.parts() };
        let past = self.pasts(&page, &shown, stretch, range).await?.pop().unwrap_or_default();
        let Told { incidents, maintenance, .. } = told_of(open, now);
        let mut open: Vec<Notice> = incidents.into_iter().chain(maintenance).map(notice).collect();
        open.retain(|notice| notice.concerns(id));
        let mut notices = self.notices(&page, now - DAYS as i64 * DAY, now + 1).await?;
        notices.retain(|notice| notice.concerns(id));
        let shown = shown.into_iter().next().ok_or(Error::NotFound)?;
        let outage_since = shown.view.outage_since;
        Ok(Closer {
            now,
            shown: drawn(shown, past, covered),
            range,
            range_until,
            open,
            notices,
            outages: self.outages(id, outage_since).await?,
            deploys: self.markers(&page).await?,
            regions: self.regions_in_service(),
            page,
        })
    }

    /// Returns one of a page's incidents or windows.
    ///
    /// # Errors
    /// [`Error::NotFound`] for one that is not on the page.
    pub async fn notice(&self, page: &Admitted, id: IncidentId) -> Result<Notice> {
        let incident = self.incident_on(page.page(), id)?.value;
        self.shown_incident(incident).await.map(notice)
    }

    /// Lists a page's incidents and windows of a month in its time zone, including those that lasted into it, newest
    /// first; at most two hundred.
    ///
    /// # Errors
    /// [`Error::NotFound`] for an invalid month.
    pub async fn notices_in(&self, page: &Admitted, year: i32, month: u32) -> Result<Vec<Notice>> {
        let zone = page.page().timezone;
        let first = NaiveDate::from_ymd_opt(year, month, 1).ok_or(Error::NotFound)?;
        let next = first.checked_add_months(chrono::Months::new(1)).ok_or(Error::NotFound)?;
        let bounds = start_of_day(first, zone).zip(start_of_day(next, zone));
        let (from, to) = bounds.ok_or(Error::NotFound)?;
        self.notices(page.page(), from, to).await
    }

    /// Returns the first and last month of a page's history as years and months: from its creation, or from its
    /// oldest incident if that was entered with an earlier date, to the current month.
    ///
    /// # Errors
    /// [`Error::Internal`] if the store can't be read.
    pub async fn months(&self, page: &Admitted) -> Result<((i32, u32), (i32, u32))> {
        let (id, created) = (page.page().id, page.page().created_at);
        let oldest = self.store().read(move |store| store.oldest_incident(id)).await?;
        let first = oldest.map_or(created, |oldest| oldest.min(created));
        Ok((month(first, page.page()), self.this_month(page)))
    }

    /// Returns the current month in a page's time zone, as year and month.
    pub fn this_month(&self, page: &Admitted) -> (i32, u32) {
        month(self.now(), page.page())
    }

    /// Lists incidents and windows that began in a period or lasted into it, newest first.
    async fn notices(&self, page: &Page, from: Timestamp, to: Timestamp) -> Result<Vec<Notice>> {
        let (id, now) = (page.id, self.now());
        let before = Some((to, IncidentId::from_u128(0)));
        let found = self.store().read(move |store| {
            let names = incidents::names(store, id)?;
            let mut found = cut(store, (id, false), before, LISTED, SAID)?;
            if let Some((oldest, _)) = found.last().filter(|_| found.len() == LISTED) {
                found.extend(lasted_into(store, &oldest.value, from, now)?);
            }
            let is_wanted = |it: &Incident| it.started_at >= from || lasts_past(it, from, now);
            found.retain(|(incident, _)| is_wanted(&incident.value));
            found
                .into_iter()
                .map(|found| incidents::shown_cut(store, found, &names))
                .collect::<crate::storage::Result<Vec<_>>>()
        });
        Ok(found.await?.into_iter().map(notice).collect())
    }

    async fn markers(&self, page: &Page) -> Result<Vec<parallax_core::deploy::Deploy>> {
        if !page.show_deploys {
            return Ok(Vec::new());
        }
        let id = page.id;
        let deploys = self.store().read(move |store| store.deploys_of(id, DEPLOYS)).await?;
        Ok(deploys.into_iter().map(|deploy| deploy.value).collect())
    }

    pub(super) fn regions_in_service(&self) -> RegionSet {
        self.stands().into_iter().map(|stand| stand.region).collect()
    }

    /// Lists a monitor's outages as far back as its changes are stored, newest first; `lasting` is the start of the
    /// ongoing one.
    async fn outages(&self, id: MonitorId, lasting: Option<Timestamp>) -> Result<Vec<Outage>> {
        let (mut outages, mut before, mut scanned) = (Outages::new(lasting), None, 0);
        while outages.len() < OUTAGES && scanned < SCANNED {
            let read = self.store().read(move |store| store.events_of(id, before, READ_AT_ONCE)).await?;
            let Some(oldest) = read.last() else { break };
            before = Some(oldest.seq);
            scanned += read.len();
            for event in read {
                match event.event.what {
                    What::Changed(change) => outages.before(change),
                    What::ScopeChanged(regions) => outages.rescoped_before(regions),
                    _ => {}
                }
            }
        }
        let mut outages = outages.into_vec();
        outages.truncate(OUTAGES);
        Ok(outages)
    }
}

/// Finds incidents of the same page that began before that incident and lasted past its start, or past `from` if that
/// is later; newest first.
fn lasted_into(
    store: &dyn Read,
    oldest: &Incident,
    from: Timestamp,
    now: Timestamp,
) -> crate::storage::Result<Vec<Cut>> {
    let since = oldest.started_at.max(from);
    let (mut before, mut lasted) = ((oldest.started_at, oldest.id), Vec::new());
    for _ in 0..LOOKED / LISTED {
        let read = cut(store, (oldest.page, false), Some(before), LISTED, SAID)?;
        let Some((last, _)) = read.last() else { break };
        before = (last.value.started_at, last.value.id);
        lasted.extend(read.into_iter().filter(|(it, _)| lasts_past(&it.value, since, now)));
        if lasted.len() >= LASTED || before.0 < since - LONGEST {
            break;
        }
    }
    lasted.truncate(LASTED);
    Ok(lasted)
}

fn lasts_past(incident: &Incident, moment: Timestamp, now: Timestamp) -> bool {
    incident.lasted(now).is_some_and(|lasted| lasted.to > moment)
}

/// Returns the chosen range, or the default for data that old with the time at which it changes.
fn range_of(chosen: Option<Range>, made: Timestamp, now: Timestamp) -> (Range, Option<Timestamp>) {
    chosen.map_or_else(|| Range::filled_since(made, now), |range| (range, None))
}

fn month(moment: Timestamp, page: &Page) -> (i32, u32) {
    day_of(moment, page.timezone).map_or((1970, 1), |day| (day.year(), day.month()))
}

fn drawn(shown: monitors::Shown, past: Past, covered: bool) -> Shown {
    Shown {
        monitor: shown.monitor,
        view: shown.view,
        uptime_24h: shown.figure.uptime,
        latency_ms: shown.figure.latency_ms,
        covered,
        past,
    }
}

pub(super) fn notice(shown: incidents::Shown) -> Notice {
    let goes_on = shown.series.filter(|series| series.stopped_at.is_none());
    let repeats = goes_on.map(|series| series.recurrence.every);
    Notice { incident: shown.incident, monitors: shown.monitors, repeats, more: shown.more }
}

const _: () = assert!(BUDGET_DAYS <= DAYS, "the error budget is computed from the days of the uptime bars");
