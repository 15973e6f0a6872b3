//! Headline of a page: one sentence for the overall status, the number of regions, and the time of the newest
//! check.

use parallax_core::event::MonitorStatus;
use parallax_core::headline::{self, HeadlineCandidate, Indicator};
use parallax_core::incident::Impact;
use parallax_core::maintenance_window::MaintenanceWindow;
use parallax_core::page_view::{IncidentView, MonitorView, PageView};
use parallax_i18n::page_messages::{PageLocale, PageMessages, fill};

use super::format::{self, FormattedTime};

/// The headline, ready to render.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Headline {
    /// CSS class and icon.
    pub class: &'static str,
    /// Title.
    pub title: String,
    /// Additional text.
    pub text: String,
    /// Number of regions; `None` if no region has reported or none is used.
    pub regions: Option<String>,
    /// Text before the time of the newest check, or instead of it if there was none.
    pub lead: String,
    /// End of the newest check.
    pub checked: Option<FormattedTime>,
}

impl Headline {
    /// Builds the headline of a page.
    pub(crate) fn of(page_view: &PageView) -> Self {
        let locale = PageLocale::of(&page_view.page);
        let messages = locale.messages;
        let checked = page_view.last_checked_at().map(|at| format::format_clock(at, page_view.now, locale));
        let regions = Some(page_view.checked_from().len()).filter(|count| *count > 0);
        let regions =
            regions.map(|count| messages.locale().plural(count as u64, messages.one_region, messages.regions));
        let is_stale = page_view.is_stale();
        let lead = match (&checked, &regions) {
            (Some(_), _) if is_stale => format!("{} ", messages.last_checked),
            (Some(_), Some(regions)) => fill(messages.checked_from, &[regions]) + messages.locale().comma(),
            (Some(_), None) => format!("{} ", messages.last_data_received),
            (None, _) if is_stale => String::new(),
            (None, _) => messages.nothing_checked.to_owned(),
        };
        if is_stale {
            let (title, text) = (messages.stale_title.to_owned(), messages.stale_text.to_owned());
            return Self { class: "none", title, text, regions, lead, checked };
        }
        let HeadlineBasis { quoted, status } = HeadlineBasis::of(page_view);
        let class = match status {
            HeadlineStatus::MostlyUnknown => indicator_class(Indicator::Unknown),
            HeadlineStatus::Known(indicator) => indicator_class(indicator),
        };
        let (title, text) = (title(page_view, quoted, status, messages), text(page_view, quoted, status, messages));
        Self { class, title, text, regions, lead, checked }
    }
}

/// CSS class of an overall status, by which it has its color and icon.
pub(crate) const fn indicator_class(indicator: Indicator) -> &'static str {
    match indicator {
        Indicator::Unknown => "none",
        Indicator::Operational => "up",
        Indicator::Degraded => "slow",
        Indicator::Partial => "part",
        Indicator::Major => "down",
        Indicator::Maintenance => "maint",
    }
}

/// Overall status as shown to people. The indicator is for programs: by its rules a paused monitor counts as
/// not down, and one monitor that is up outweighs any number of unknown ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HeadlineStatus {
    /// As the indicator, except that only active monitors count.
    Known(Indicator),
    /// No problem is known, but at least half of the active monitors have no data.
    MostlyUnknown,
}

impl HeadlineStatus {
    /// Returns the overall status of a page.
    pub(super) fn of(page_view: &PageView) -> Self {
        HeadlineBasis::of(page_view).status
    }

    /// Overall status by the indicator, if no incident overrides the monitors.
    fn from_indicator(indicator: Indicator, page_view: &PageView) -> Self {
        let is_active = |view: &&MonitorView| !view.monitor.paused && !view.in_maintenance;
        let active = page_view.monitors.iter().filter(is_active).count();
        let down = page_view.with_status(MonitorStatus::Down).filter(is_active).count();
        let is_partial = |view: &MonitorView| view.state.down_from.is_some();
        let all_partial = down > 0 && page_view.with_status(MonitorStatus::Down).filter(is_active).all(is_partial);
        match indicator {
            // Monitors down from some regions are up from others.
            Indicator::Major if all_partial => Self::Known(Indicator::Partial),
            Indicator::Partial if down == active && !all_partial => Self::Known(Indicator::Major),
            Indicator::Operational if active > 0 && unknown_count(page_view) * 2 >= active => Self::MostlyUnknown,
            other => Self::Known(other),
        }
    }
}

/// Basis of the headline.
#[derive(Debug, Clone, Copy)]
struct HeadlineBasis<'a> {
    /// Open incident whose title is shown; `None` if the monitors decide.
    quoted: Option<&'a IncidentView>,
    status: HeadlineStatus,
}

impl<'a> HeadlineBasis<'a> {
    fn of(page_view: &'a PageView) -> Self {
        let from_monitors = monitors_indicator(page_view);
        let candidates = page_view
            .incidents
            .iter()
            .map(|incident_view| HeadlineCandidate::of(&incident_view.incident, &incident_view.monitors));
        let quoted = headline::quoted_incident(candidates, from_monitors);
        let quoted = quoted.and_then(|at| page_view.incidents.get(at));
        let is_reported = page_view.incidents.iter().any(|incident_view| incident_view.incident.impact > Impact::None);
        let status = match quoted {
            Some(incident_view) => HeadlineStatus::Known(Indicator::of(Some(incident_view.incident.impact), [], false)),
            // The indicator comes from an incident that only repeats which monitors are down.
            None if is_reported => HeadlineStatus::from_indicator(from_monitors, page_view),
            None => HeadlineStatus::from_indicator(page_view.indicator, page_view),
        };
        Self { quoted, status }
    }
}

/// Indicator of monitors and maintenance windows, without incidents.
fn monitors_indicator(page_view: &PageView) -> Indicator {
    let statuses = page_view.monitors.iter().filter(|view| !view.in_maintenance).map(|view| view.state.status);
    let mut windows =
        page_view.maintenance.iter().filter_map(|incident_view| MaintenanceWindow::of(&incident_view.incident));
    Indicator::of(None, statuses, windows.any(|window| window.span.contains(page_view.now)))
}

/// Number of active monitors without data.
fn unknown_count(page_view: &PageView) -> usize {
    page_view.with_status(MonitorStatus::Unknown).filter(|view| !view.monitor.paused).count()
}

/// Number of monitors that are not paused.
fn active_count(page_view: &PageView) -> usize {
    page_view.monitors.iter().filter(|view| !view.monitor.paused).count()
}

fn title(
    page_view: &PageView,
    quoted: Option<&IncidentView>,
    status: HeadlineStatus,
    messages: &PageMessages,
) -> String {
    if let Some(quoted) = quoted {
        return quoted.incident.title.clone();
    }
    let names = match status {
        HeadlineStatus::Known(Indicator::Partial) => affected_names(page_view, MonitorStatus::Down, messages),
        HeadlineStatus::Known(Indicator::Degraded) => affected_names(page_view, MonitorStatus::Slow, messages),
        HeadlineStatus::Known(Indicator::Major) if active_count(page_view) == 1 => {
            affected_names(page_view, MonitorStatus::Down, messages)
        }
        HeadlineStatus::Known(_) | HeadlineStatus::MostlyUnknown => None,
    };
    let default_title = match status {
        HeadlineStatus::MostlyUnknown => messages.known_operational,
        HeadlineStatus::Known(Indicator::Unknown) => messages.all_unknown,
        // "All" is not claimed if a monitor has no data.
        HeadlineStatus::Known(Indicator::Operational) if unknown_count(page_view) > 0 => messages.known_operational,
        HeadlineStatus::Known(Indicator::Operational) => messages.all_operational,
        HeadlineStatus::Known(Indicator::Degraded) => messages.some_slow,
        HeadlineStatus::Known(Indicator::Partial) => messages.some_down,
        HeadlineStatus::Known(Indicator::Major) => messages.all_down,
        HeadlineStatus::Known(Indicator::Maintenance) => messages.in_maintenance_now,
    };
    names.unwrap_or_else(|| default_title.to_owned())
}

/// Names the monitors that are down, or slow, if they are few.
fn affected_names(page_view: &PageView, status: MonitorStatus, messages: &PageMessages) -> Option<String> {
    let is_down = status == MonitorStatus::Down;
    let (singular, pair, several) = if is_down {
        (messages.is_down, messages.are_down, messages.many_down)
    } else {
        (messages.is_slow, messages.are_slow, messages.many_slow)
    };
    let affected: Vec<_> = page_view.with_status(status).collect();
    match affected.as_slice() {
        [] => None,
        [one] => {
            let (from, singular_from) = if is_down {
                (one.state.down_from, messages.is_down_from)
            } else {
                (one.state.slow_from, messages.is_slow_from)
            };
            Some(match from {
                Some(from) => fill(singular_from, &[&one.monitor.name, &messages.locale().regions(from)]),
                None => fill(singular, &[&one.monitor.name]),
            })
        }
        [one, other] => Some(fill(pair, &[&one.monitor.name, &other.monitor.name])),
        more => Some(fill(several, &[&more.len().to_string(), &active_count(page_view).to_string()])),
    }
}

/// Status of the monitors that the title doesn't cover.
fn text(
    page_view: &PageView,
    quoted: Option<&IncidentView>,
    status: HeadlineStatus,
    messages: &PageMessages,
) -> String {
    let count = |status| page_view.with_status(status).count();
    let is_reported = |view: &MonitorView| {
        quoted.is_some_and(|incident_view| incident_view.monitors.iter().any(|(id, ..)| *id == view.monitor.id))
    };
    let (down, slow, unknown) = (count(MonitorStatus::Down), count(MonitorStatus::Slow), unknown_count(page_view));
    let has_maintenance = page_view.monitors.iter().any(|view| view.in_maintenance);
    let mut sentences = Vec::new();
    if quoted.is_some() {
        // The title is that of an incident and doesn't name other monitors that are down.
        let others: Vec<&str> = page_view
            .with_status(MonitorStatus::Down)
            .filter(|view| !is_reported(view))
            .map(|view| view.monitor.name.as_str())
            .collect();
        match others.as_slice() {
            [] => {}
            [one] => sentences.push(fill(messages.is_down, &[one])),
            [one, other] => sentences.push(fill(messages.are_down, &[one, other])),
            more => sentences.push(fill(messages.others_down, &[&more.len().to_string()])),
        }
    }
    match status {
        HeadlineStatus::Known(Indicator::Operational) | HeadlineStatus::MostlyUnknown if has_maintenance => {
            sentences.push(messages.in_maintenance_now.to_owned());
        }
        HeadlineStatus::Known(Indicator::Maintenance) => {
            let names: Vec<String> = page_view
                .maintenance
                .iter()
                .filter(|it| it.incident.has_begun)
                .map(|it| it.incident.title.clone())
                .collect();
            if !names.is_empty() {
                sentences.push(fill(messages.windows_in_progress, &[&messages.locale().list(&names)]));
            }
        }
        HeadlineStatus::Known(Indicator::Partial | Indicator::Degraded) => {
            // The title names no regions if several monitors are down.
            let from: Option<Vec<_>> =
                page_view.with_status(MonitorStatus::Down).map(|view| view.state.down_from).collect();
            if let Some(from) = from.filter(|from| from.len() > 1 && quoted.is_none()) {
                let regions = from.iter().flat_map(|regions| regions.iter()).collect();
                sentences.push(fill(messages.state_down_from, &[&messages.locale().regions(regions)]));
            }
            let slow_count = page_view.with_status(MonitorStatus::Slow).filter(|view| !is_reported(view)).count();
            if (down > 0 || quoted.is_some()) && slow_count > 0 {
                sentences.push(messages.locale().plural(
                    slow_count as u64,
                    messages.more_is_slow,
                    messages.more_are_slow,
                ));
            } else if down + slow < active_count(page_view) && unknown == 0 && !has_maintenance {
                sentences.push(messages.others_working.to_owned());
            }
        }
        HeadlineStatus::Known(Indicator::Unknown | Indicator::Operational | Indicator::Major)
        | HeadlineStatus::MostlyUnknown => {}
    }
    if unknown > 0 && unknown < active_count(page_view) {
        sentences.push(messages.locale().plural(unknown as u64, messages.has_no_data, messages.have_no_data));
    }
    let terminated: Vec<String> = sentences.into_iter().map(|text| text + messages.sentence_end).collect();
    terminated.join(" ")
}

#[cfg(test)]
mod tests;
