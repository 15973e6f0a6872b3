//! The headline: one sentence for how all of it is, from how many regions that was seen, and when.

use parallax_core::board::{Board, Notice, Shown};
use parallax_core::event::Status;
use parallax_core::headline::Indicator;
use parallax_core::incident::Impact;

use super::tongue::{Voice, Words, fill};
use super::words::{self, Moment};

/// The headline, ready to print.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Headline {
    /// Class and icon.
    pub class: &'static str,
    /// The sentence.
    pub title: String,
    /// What is to be said beside it.
    pub text: String,
    /// From how many regions it is seen; none where no region has looked yet, or nobody is asked to.
    pub regions: Option<String>,
    /// What stands before the moment of the newest check, or in its place where there was none.
    pub lead: String,
    /// When the newest check ended.
    pub checked: Option<Moment>,
}

impl Headline {
    /// The headline of a page.
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
        let class = match board.indicator {
            Indicator::Unknown => "none",
            Indicator::Operational => "up",
            Indicator::Degraded => "slow",
            Indicator::Partial => "part",
            Indicator::Major => "down",
            Indicator::Maintenance => "maint",
        };
        Self { class, title: title(board, said), text: text(board, said), regions, lead, checked }
    }
}

fn title(board: &Board, said: &Words) -> String {
    let worst = board.incidents.iter().max_by_key(|notice| notice.incident.impact);
    if let Some(worst) = worst.filter(|worst| worst.incident.impact > Impact::None) {
        return worst.incident.title.clone();
    }
    let named = match board.indicator {
        Indicator::Partial => some(board, Status::Down, said),
        Indicator::Degraded => some(board, Status::Slow, said),
        Indicator::Major if board.monitors.len() == 1 => some(board, Status::Down, said),
        Indicator::Unknown | Indicator::Operational | Indicator::Major | Indicator::Maintenance => None,
    };
    let all = match board.indicator {
        Indicator::Unknown => said.all_unknown,
        Indicator::Operational => said.all_operational,
        Indicator::Degraded => said.some_slow,
        Indicator::Partial => said.some_down,
        Indicator::Major => said.all_down,
        Indicator::Maintenance => said.in_maintenance_now,
    };
    named.unwrap_or_else(|| all.to_owned())
}

/// Those that are down, or slow, by name where they are few.
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
        [one] => Some(match one.view.down_from.filter(|_| is_down) {
            Some(from) => fill(said.is_down_from, &[&one.monitor.name, &said.tongue().regions(from)]),
            None => fill(is, &[&one.monitor.name]),
        }),
        [one, other] => Some(fill(are, &[&one.monitor.name, &other.monitor.name])),
        more => Some(fill(many, &[&more.len().to_string(), &board.monitors.len().to_string()])),
    }
}

/// What the title leaves open: how the others are.
fn text(board: &Board, said: &Words) -> String {
    let count = |status| board.with_status(status).count();
    let is_told = |shown: &Shown| {
        let names = |notice: &Notice| notice.monitors.iter().any(|(id, ..)| *id == shown.monitor.id);
        board.incidents.iter().any(names)
    };
    let (down, slow, unknown) = (count(Status::Down), count(Status::Slow), count(Status::Unknown));
    let mut sentences = Vec::new();
    if board.incidents.iter().any(|notice| notice.incident.impact > Impact::None) {
        // The title is of an incident, and says nothing of what else is down.
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
    match board.indicator {
        Indicator::Operational if board.monitors.iter().any(|shown| shown.covered) => {
            sentences.push(said.in_maintenance_now.to_owned());
        }
        Indicator::Maintenance => {
            let names: Vec<String> = board
                .maintenance
                .iter()
                .filter(|it| it.incident.begun)
                .map(|it| it.incident.title.clone())
                .collect();
            if !names.is_empty() {
                sentences.push(said.tongue().list(&names));
            }
        }
        Indicator::Partial | Indicator::Degraded => {
            if down > 0 && slow > 0 {
                sentences.push(said.tongue().count(slow as u64, said.more_is_slow, said.more_are_slow));
            } else if down + slow + unknown < board.monitors.len() && unknown == 0 {
                sentences.push(said.rest_working.to_owned());
            }
        }
        Indicator::Unknown | Indicator::Operational | Indicator::Major => {}
    }
    if unknown > 0 && unknown < board.monitors.len() {
        sentences.push(said.tongue().count(unknown as u64, said.has_no_data, said.have_no_data));
    }
    let ended: Vec<String> = sentences.into_iter().map(|text| text + said.stop).collect();
    ended.join(" ")
}
