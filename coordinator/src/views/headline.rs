//! Headline of a page: one sentence for the overall status, the number of regions, and the time of the newest
//! check.

use parallax_core::board::{Board, Notice, Shown};
use parallax_core::event::Status;
use parallax_core::headline::{self, Claim, Indicator};
use parallax_core::incident::Impact;
use parallax_core::window::Window;

use super::tongue::{Voice, Words, fill};
use super::words::{self, Moment};

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
    pub checked: Option<Moment>,
}

impl Headline {
    /// Builds the headline of a page.
    pub fn of(board: &Board) -> Self {
        let voice = Voice::of(&board.page);
        let said = voice.words;
        let checked = board.checked().map(|at| words::clock(at, board.now, voice));
        let regions = Some(board.seen_from().len()).filter(|count| *count > 0);
        let regions = regions.map(|count| said.tongue().count(count as u64, said.one_region, said.regions));
        let is_stale = board.is_stale();
        let lead = match (&checked, &regions) {
            (Some(_), _) if is_stale => format!("{} ", said.last_checked),
            (Some(_), Some(regions)) => fill(said.checked_from, &[regions]) + said.tongue().comma(),
            (Some(_), None) => format!("{} ", said.last_heard),
            (None, _) if is_stale => String::new(),
            (None, _) => said.nothing_checked.to_owned(),
        };
        if is_stale {
            let (title, text) = (said.stale_title.to_owned(), said.stale_text.to_owned());
            return Self { class: "none", title, text, regions, lead, checked };
        }
        let Standing { quoted, whole } = Standing::of(board);
        let class = match whole {
            Whole::HardlySeen | Whole::Seen(Indicator::Unknown) => "none",
            Whole::Seen(Indicator::Operational) => "up",
            Whole::Seen(Indicator::Degraded) => "slow",
            Whole::Seen(Indicator::Partial) => "part",
            Whole::Seen(Indicator::Major) => "down",
            Whole::Seen(Indicator::Maintenance) => "maint",
        };
        let (title, text) = (title(board, quoted, whole, said), text(board, quoted, whole, said));
        Self { class, title, text, regions, lead, checked }
    }
}

/// Overall status as shown to people. The indicator is for programs: by its rules a paused monitor counts as
/// not down, and one monitor that is up outweighs any number of unknown ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whole {
    /// As the indicator, except that only active monitors count.
    Seen(Indicator),
    /// No problem is known, but at least half of the active monitors have no data.
    HardlySeen,
}

impl Whole {
    /// Returns the overall status of a page.
    pub(super) fn of(board: &Board) -> Self {
        Standing::of(board).whole
    }

    /// Overall status by the indicator, if no incident overrides the monitors.
    fn seen(indicator: Indicator, board: &Board) -> Self {
        let is_watched = |shown: &&Shown| !shown.monitor.paused && !shown.covered;
        let watched = board.monitors.iter().filter(is_watched).count();
        let down = board.with_status(Status::Down).filter(is_watched).count();
        let is_partly = |shown: &Shown| shown.view.down_from.is_some();
        let are_partly = down > 0 && board.with_status(Status::Down).filter(is_watched).all(is_partly);
        match indicator {
            // Monitors down from some regions are up from others.
            Indicator::Major if are_partly => Self::Seen(Indicator::Partial),
            Indicator::Partial if down == watched && !are_partly => Self::Seen(Indicator::Major),
            Indicator::Operational if watched > 0 && unknown(board) * 2 >= watched => Self::HardlySeen,
            other => Self::Seen(other),
        }
    }
}

/// Basis of the headline.
#[derive(Debug, Clone, Copy)]
struct Standing<'a> {
    /// Open incident whose title is shown; `None` if the monitors decide.
    quoted: Option<&'a Notice>,
    whole: Whole,
}

impl<'a> Standing<'a> {
    fn of(board: &'a Board) -> Self {
        let seen = seen(board);
        let claims = board.incidents.iter().map(|notice| Claim::of(&notice.incident, &notice.monitors));
        let quoted = headline::quoted(claims, seen);
        let quoted = quoted.and_then(|at| board.incidents.get(at));
        let is_told = board.incidents.iter().any(|notice| notice.incident.impact > Impact::None);
        let whole = match quoted {
            Some(notice) => Whole::Seen(Indicator::of(Some(notice.incident.impact), [], false)),
            // The indicator comes from an incident that only repeats which monitors are down.
            None if is_told => Whole::seen(seen, board),
            None => Whole::seen(board.indicator, board),
        };
        Self { quoted, whole }
    }
}

/// Indicator of monitors and maintenance windows, without incidents.
fn seen(board: &Board) -> Indicator {
    let statuses = board.monitors.iter().filter(|shown| !shown.covered).map(|shown| shown.view.status);
    let mut windows = board.maintenance.iter().filter_map(|notice| Window::of(&notice.incident));
    Indicator::of(None, statuses, windows.any(|window| window.span.contains(board.now)))
}

/// Number of active monitors without data.
fn unknown(board: &Board) -> usize {
    board.with_status(Status::Unknown).filter(|shown| !shown.monitor.paused).count()
}

/// Number of monitors that are not paused.
fn services(board: &Board) -> usize {
    board.monitors.iter().filter(|shown| !shown.monitor.paused).count()
}

fn title(board: &Board, quoted: Option<&Notice>, whole: Whole, said: &Words) -> String {
    if let Some(quoted) = quoted {
        return quoted.incident.title.clone();
    }
    let named = match whole {
        Whole::Seen(Indicator::Partial) => some(board, Status::Down, said),
        Whole::Seen(Indicator::Degraded) => some(board, Status::Slow, said),
        Whole::Seen(Indicator::Major) if services(board) == 1 => some(board, Status::Down, said),
        Whole::Seen(_) | Whole::HardlySeen => None,
    };
    let all = match whole {
        Whole::HardlySeen => said.seen_operational,
        Whole::Seen(Indicator::Unknown) => said.all_unknown,
        // "All" is not claimed if a monitor has no data.
        Whole::Seen(Indicator::Operational) if unknown(board) > 0 => said.seen_operational,
        Whole::Seen(Indicator::Operational) => said.all_operational,
        Whole::Seen(Indicator::Degraded) => said.some_slow,
        Whole::Seen(Indicator::Partial) => said.some_down,
        Whole::Seen(Indicator::Major) => said.all_down,
        Whole::Seen(Indicator::Maintenance) => said.in_maintenance_now,
    };
    named.unwrap_or_else(|| all.to_owned())
}

/// Names the monitors that are down, or slow, if they are few.
fn some(board: &Board, status: Status, said: &Words) -> Option<String> {
    let is_down = status == Status::Down;
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
                (one.view.down_from, said.is_down_from)
            } else {
                (one.view.slow_from, said.is_slow_from)
            };
            Some(match from {
                Some(from) => fill(is_from, &[&one.monitor.name, &said.tongue().regions(from)]),
                None => fill(is, &[&one.monitor.name]),
            })
        }
        [one, other] => Some(fill(are, &[&one.monitor.name, &other.monitor.name])),
        more => Some(fill(many, &[&more.len().to_string(), &services(board).to_string()])),
    }
}

/// Status of the monitors that the title doesn't cover.
fn text(board: &Board, quoted: Option<&Notice>, whole: Whole, said: &Words) -> String {
    let count = |status| board.with_status(status).count();
    let is_told = |shown: &Shown| {
        quoted.is_some_and(|notice| notice.monitors.iter().any(|(id, ..)| *id == shown.monitor.id))
    };
    let (down, slow, unknown) = (count(Status::Down), count(Status::Slow), unknown(board));
    let is_maintained = board.monitors.iter().any(|shown| shown.covered);
    let mut sentences = Vec::new();
    if quoted.is_some() {
        // The title is that of an incident and doesn't name other monitors that are down.
        let others: Vec<&str> = board
            .with_status(Status::Down)
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
        Whole::Seen(Indicator::Operational) | Whole::HardlySeen if is_maintained => {
            sentences.push(said.in_maintenance_now.to_owned());
        }
        Whole::Seen(Indicator::Maintenance) => {
            let names: Vec<String> = board
                .maintenance
                .iter()
                .filter(|it| it.incident.begun)
                .map(|it| it.incident.title.clone())
                .collect();
            if !names.is_empty() {
                sentences.push(fill(said.names_under_way, &[&said.tongue().list(&names)]));
            }
        }
        Whole::Seen(Indicator::Partial | Indicator::Degraded) => {
            // The title names no regions if several monitors are down.
            let from: Option<Vec<_>> =
                board.with_status(Status::Down).map(|shown| shown.view.down_from).collect();
            if let Some(from) = from.filter(|from| from.len() > 1 && quoted.is_none()) {
                let regions = from.iter().flat_map(|regions| regions.iter()).collect();
                sentences.push(fill(said.state_down_from, &[&said.tongue().regions(regions)]));
            }
            let slower = board.with_status(Status::Slow).filter(|shown| !is_told(shown)).count();
            if (down > 0 || quoted.is_some()) && slower > 0 {
                sentences.push(said.tongue().count(slower as u64, said.more_is_slow, said.more_are_slow));
            } else if down + slow < services(board) && unknown == 0 && !is_maintained {
                sentences.push(said.rest_working.to_owned());
            }
        }
        Whole::Seen(Indicator::Unknown | Indicator::Operational | Indicator::Major) | Whole::HardlySeen => {}
    }
    if unknown > 0 && unknown < services(board) {
        sentences.push(said.tongue().count(unknown as u64, said.has_no_data, said.have_no_data));
    }
    let ended: Vec<String> = sentences.into_iter().map(|text| text + said.stop).collect();
    ended.join(" ")
}

#[cfg(test)]
mod tests;
