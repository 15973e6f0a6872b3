//! Headline of a page: one sentence for the overall status, the number of regions, and the time of the newest
//! check.

use parallax_core::event::MonitorStatus;
use parallax_core::headline::{self, HeadlineCandidate, Indicator};
use parallax_core::incident::Impact;
use parallax_core::maintenance_window::MaintenanceWindow;
use parallax_core::page_view::{IncidentView, MonitorView, PageView};

use super::format::{self, FormattedTime};
use super::messages::{PageLocale, PageMessages, fill};

/// The headline, ready to render.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Headline {
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
    pub fn of(board: &PageView) -> Self {
        let voice = PageLocale::of(&board.page);
        let said = voice.messages;
        let checked = board.last_checked_at().map(|at| format::format_clock(at, board.now, voice));
        let regions = Some(board.checked_from().len()).filter(|count| *count > 0);
        let regions = regions.map(|count| said.locale().plural(count as u64, said.one_region, said.regions));
        let is_stale = board.is_stale();
        let lead = match (&checked, &regions) {
            (Some(_), _) if is_stale => format!("{} ", said.last_checked),
            (Some(_), Some(regions)) => fill(said.checked_from, &[regions]) + said.locale().comma(),
            (Some(_), None) => format!("{} ", said.last_data),
            (None, _) if is_stale => String::new(),
            (None, _) => said.nothing_checked.to_owned(),
        };
        if is_stale {
            let (title, text) = (said.stale_title.to_owned(), said.stale_text.to_owned());
            return Self { class: "none", title, text, regions, lead, checked };
        }
        let HeadlineBasis { quoted, whole } = HeadlineBasis::of(board);
        let class = match whole {
            HeadlineStatus::MostlyUnknown | HeadlineStatus::Known(Indicator::Unknown) => "none",
            HeadlineStatus::Known(Indicator::Operational) => "up",
            HeadlineStatus::Known(Indicator::Degraded) => "slow",
            HeadlineStatus::Known(Indicator::Partial) => "part",
            HeadlineStatus::Known(Indicator::Major) => "down",
            HeadlineStatus::Known(Indicator::Maintenance) => "maint",
        };
        let (title, text) = (title(board, quoted, whole, said), text(board, quoted, whole, said));
        Self { class, title, text, regions, lead, checked }
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
    pub(super) fn of(board: &PageView) -> Self {
        HeadlineBasis::of(board).whole
    }

    /// Overall status by the indicator, if no incident overrides the monitors.
    fn from_indicator(indicator: Indicator, board: &PageView) -> Self {
        let is_watched = |shown: &&MonitorView| !shown.monitor.paused && !shown.in_maintenance;
        let watched = board.monitors.iter().filter(is_watched).count();
        let down = board.with_status(MonitorStatus::Down).filter(is_watched).count();
        let is_partly = |shown: &MonitorView| shown.state.down_from.is_some();
        let are_partly = down > 0 && board.with_status(MonitorStatus::Down).filter(is_watched).all(is_partly);
        match indicator {
            // Monitors down from some regions are up from others.
            Indicator::Major if are_partly => Self::Known(Indicator::Partial),
            Indicator::Partial if down == watched && !are_partly => Self::Known(Indicator::Major),
            Indicator::Operational if watched > 0 && unknown_count(board) * 2 >= watched => Self::MostlyUnknown,
            other => Self::Known(other),
        }
    }
}

/// Basis of the headline.
#[derive(Debug, Clone, Copy)]
struct HeadlineBasis<'a> {
    /// Open incident whose title is shown; `None` if the monitors decide.
    quoted: Option<&'a IncidentView>,
    whole: HeadlineStatus,
}

impl<'a> HeadlineBasis<'a> {
    fn of(board: &'a PageView) -> Self {
        let seen = monitors_indicator(board);
        let claims = board.incidents.iter().map(|notice| HeadlineCandidate::of(&notice.incident, &notice.monitors));
        let quoted = headline::quoted_incident(claims, seen);
        let quoted = quoted.and_then(|at| board.incidents.get(at));
        let is_told = board.incidents.iter().any(|notice| notice.incident.impact > Impact::None);
        let whole = match quoted {
            Some(notice) => HeadlineStatus::Known(Indicator::of(Some(notice.incident.impact), [], false)),
            // The indicator comes from an incident that only repeats which monitors are down.
            None if is_told => HeadlineStatus::from_indicator(seen, board),
            None => HeadlineStatus::from_indicator(board.indicator, board),
        };
        Self { quoted, whole }
    }
}

/// Indicator of monitors and maintenance windows, without incidents.
fn monitors_indicator(board: &PageView) -> Indicator {
    let statuses = board.monitors.iter().filter(|shown| !shown.in_maintenance).map(|shown| shown.state.status);
    let mut windows = board.maintenance.iter().filter_map(|notice| MaintenanceWindow::of(&notice.incident));
    Indicator::of(None, statuses, windows.any(|window| window.span.contains(board.now)))
}

/// Number of active monitors without data.
fn unknown_count(board: &PageView) -> usize {
    board.with_status(MonitorStatus::Unknown).filter(|shown| !shown.monitor.paused).count()
}

/// Number of monitors that are not paused.
fn active_count(board: &PageView) -> usize {
    board.monitors.iter().filter(|shown| !shown.monitor.paused).count()
}

fn title(board: &PageView, quoted: Option<&IncidentView>, whole: HeadlineStatus, said: &PageMessages) -> String {
    if let Some(quoted) = quoted {
        return quoted.incident.title.clone();
    }
    let named = match whole {
        HeadlineStatus::Known(Indicator::Partial) => affected_names(board, MonitorStatus::Down, said),
        HeadlineStatus::Known(Indicator::Degraded) => affected_names(board, MonitorStatus::Slow, said),
        HeadlineStatus::Known(Indicator::Major) if active_count(board) == 1 => {
            affected_names(board, MonitorStatus::Down, said)
        }
        HeadlineStatus::Known(_) | HeadlineStatus::MostlyUnknown => None,
    };
    let all = match whole {
        HeadlineStatus::MostlyUnknown => said.known_operational,
        HeadlineStatus::Known(Indicator::Unknown) => said.all_unknown,
        // "All" is not claimed if a monitor has no data.
        HeadlineStatus::Known(Indicator::Operational) if unknown_count(board) > 0 => said.known_operational,
        HeadlineStatus::Known(Indicator::Operational) => said.all_operational,
        HeadlineStatus::Known(Indicator::Degraded) => said.some_slow,
        HeadlineStatus::Known(Indicator::Partial) => said.some_down,
        HeadlineStatus::Known(Indicator::Major) => said.all_down,
        HeadlineStatus::Known(Indicator::Maintenance) => said.in_maintenance_now,
    };
    named.unwrap_or_else(|| all.to_owned())
}

/// Names the monitors that are down, or slow, if they are few.
fn affected_names(board: &PageView, status: MonitorStatus, said: &PageMessages) -> Option<String> {
    let is_down = status == MonitorStatus::Down;
    let (is, are, many) = if is_down {
        (said.is_down, said.are_down, said.many_down)
    } else {
        (said.is_slow, said.are_slow, said.many_slow)
    };
    let found: Vec<_> = board.with_status(status).collect();
    match found.as_slice() {
        [] => None,
        [one] => {
            let (from, is_from) = if is_down {
                (one.state.down_from, said.is_down_from)
            } else {
                (one.state.slow_from, said.is_slow_from)
            };
            Some(match from {
                Some(from) => fill(is_from, &[&one.monitor.name, &said.locale().regions(from)]),
                None => fill(is, &[&one.monitor.name]),
            })
        }
        [one, other] => Some(fill(are, &[&one.monitor.name, &other.monitor.name])),
        more => Some(fill(many, &[&more.len().to_string(), &active_count(board).to_string()])),
    }
}

/// Status of the monitors that the title doesn't cover.
fn text(board: &PageView, quoted: Option<&IncidentView>, whole: HeadlineStatus, said: &PageMessages) -> String {
    let count = |status| board.with_status(status).count();
    let is_told = |shown: &MonitorView| {
        quoted.is_some_and(|notice| notice.monitors.iter().any(|(id, ..)| *id == shown.monitor.id))
    };
    let (down, slow, unknown) = (count(MonitorStatus::Down), count(MonitorStatus::Slow), unknown_count(board));
    let is_maintained = board.monitors.iter().any(|shown| shown.in_maintenance);
    let mut sentences = Vec::new();
    if quoted.is_some() {
        // The title is that of an incident and doesn't name other monitors that are down.
        let others: Vec<&str> = board
            .with_status(MonitorStatus::Down)
            .filter(|shown| !is_told(shown))
            .map(|shown| shown.monitor.name.as_str())
            .collect();
        match others.as_slice() {
            [] => {}
            [one] => sentences.push(fill(said.is_down, &[one])),
            [one, other] => sentences.push(fill(said.are_down, &[one, other])),
            more => sentences.push(fill(said.others_down, &[&more.len().to_string()])),
        }
    }
    match whole {
        HeadlineStatus::Known(Indicator::Operational) | HeadlineStatus::MostlyUnknown if is_maintained => {
            sentences.push(said.in_maintenance_now.to_owned());
        }
        HeadlineStatus::Known(Indicator::Maintenance) => {
            let names: Vec<String> = board
                .maintenance
                .iter()
                .filter(|it| it.incident.has_begun)
                .map(|it| it.incident.title.clone())
                .collect();
            if !names.is_empty() {
                sentences.push(fill(said.names_under_way, &[&said.locale().list(&names)]));
            }
        }
        HeadlineStatus::Known(Indicator::Partial | Indicator::Degraded) => {
            // The title names no regions if several monitors are down.
            let from: Option<Vec<_>> =
                board.with_status(MonitorStatus::Down).map(|shown| shown.state.down_from).collect();
            if let Some(from) = from.filter(|from| from.len() > 1 && quoted.is_none()) {
                let regions = from.iter().flat_map(|regions| regions.iter()).collect();
                sentences.push(fill(said.state_down_from, &[&said.locale().regions(regions)]));
            }
            let slower = board.with_status(MonitorStatus::Slow).filter(|shown| !is_told(shown)).count();
            if (down > 0 || quoted.is_some()) && slower > 0 {
                sentences.push(said.locale().plural(slower as u64, said.more_is_slow, said.more_are_slow));
            } else if down + slow < active_count(board) && unknown == 0 && !is_maintained {
                sentences.push(said.others_working.to_owned());
            }
        }
        HeadlineStatus::Known(Indicator::Unknown | Indicator::Operational | Indicator::Major)
        | HeadlineStatus::MostlyUnknown => {}
    }
    if unknown > 0 && unknown < active_count(board) {
        sentences.push(said.locale().plural(unknown as u64, said.has_no_data, said.have_no_data));
    }
    let ended: Vec<String> = sentences.into_iter().map(|text| text + said.sentence_end).collect();
    ended.join(" ")
}

#[cfg(test)]
mod tests;
