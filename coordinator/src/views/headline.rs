//! The headline: one sentence for how all of it is, from how many regions that was seen, and when.

use parallax_core::board::{Board, Notice, Shown};
use parallax_core::event::Status;
use parallax_core::headline::Indicator;
use parallax_core::incident::Impact;

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
    /// When the newest check ended.
    pub checked: Option<Moment>,
    /// Whether it is no longer seen.
    pub is_stale: bool,
}

impl Headline {
    /// The headline of a page.
    pub fn of(board: &Board) -> Self {
        let checked = board.checked().map(|at| words::clock(at, board.page.timezone));
        let regions = Some(board.seen_from().len()).filter(|count| *count > 0);
        let regions = regions.map(|count| words::count(count, "region", "regions"));
        if board.is_stale() {
            return Self {
                class: "none",
                title: "Nothing is being checked right now".to_owned(),
                text:
                    "No region is connected. What is shown below was seen last, and may not be so any more."
                        .to_owned(),
                regions,
                checked,
                is_stale: true,
            };
        }
        let class = match board.indicator {
            Indicator::Unknown => "none",
            Indicator::Operational => "up",
            Indicator::Degraded => "slow",
            Indicator::Partial => "part",
            Indicator::Major => "down",
            Indicator::Maintenance => "maint",
        };
        Self { class, title: title(board), text: text(board), regions, checked, is_stale: false }
    }
}

fn title(board: &Board) -> String {
    let worst = board.incidents.iter().max_by_key(|notice| notice.incident.impact);
    if let Some(worst) = worst.filter(|worst| worst.incident.impact > Impact::None) {
        return worst.incident.title.clone();
    }
    match board.indicator {
        Indicator::Partial => {
            some(board, Status::Down, "down").unwrap_or_else(|| board.indicator.headline().to_owned())
        }
        Indicator::Degraded => {
            some(board, Status::Slow, "slow").unwrap_or_else(|| board.indicator.headline().to_owned())
        }
        Indicator::Major if board.monitors.len() == 1 => {
            some(board, Status::Down, "down").unwrap_or_else(|| board.indicator.headline().to_owned())
        }
        Indicator::Unknown | Indicator::Operational | Indicator::Major | Indicator::Maintenance => {
            board.indicator.headline().to_owned()
        }
    }
}

/// Those that have a status, by name where they are few.
fn some(board: &Board, status: Status, word: &str) -> Option<String> {
    let found: Vec<_> = board.with_status(status).collect();
    match found.as_slice() {
        [] => None,
        [one] => {
            let from = one.view.down_from.filter(|_| status == Status::Down);
            let from = from.map(|regions| format!(" from {}", words::regions(regions))).unwrap_or_default();
            Some(format!("{} is {word}{from}", one.monitor.name))
        }
        [one, other] => Some(format!("{} and {} are {word}", one.monitor.name, other.monitor.name)),
        more => Some(format!("{} of {} services are {word}", more.len(), board.monitors.len())),
    }
}

/// What the title leaves open: how the others are.
fn text(board: &Board) -> String {
    let count = |status| board.with_status(status).count();
    let is_told = |shown: &Shown| {
        let names = |notice: &Notice| notice.monitors.iter().any(|(id, ..)| *id == shown.monitor.id);
        board.incidents.iter().any(names)
    };
    let (down, slow, unknown) = (count(Status::Down), count(Status::Slow), count(Status::Unknown));
    let mut said = Vec::new();
    if board.incidents.iter().any(|notice| notice.incident.impact > Impact::None) {
        // The title is of an incident, and says nothing of what else is down.
        let others: Vec<String> = board
            .with_status(Status::Down)
            .filter(|shown| !is_told(shown))
            .map(|shown| shown.monitor.name.clone())
            .collect();
        match others.as_slice() {
            [] => {}
            [one] => said.push(format!("{one} is down.")),
            [one, other] => said.push(format!("{one} and {other} are down.")),
            more => said.push(format!("{} others are down.", more.len())),
        }
    }
    match board.indicator {
        Indicator::Operational if board.monitors.iter().any(|shown| shown.covered) => {
            said.push("Maintenance is under way.".to_owned());
        }
        Indicator::Maintenance => {
            let names: Vec<String> = board
                .maintenance
                .iter()
                .filter(|it| it.incident.begun)
                .map(|it| it.incident.title.clone())
                .collect();
            if !names.is_empty() {
                said.push(format!("{}.", words::list(&names)));
            }
        }
        Indicator::Partial | Indicator::Degraded => {
            if down > 0 && slow > 0 {
                said.push(format!("{slow} more {} slow.", if slow == 1 { "is" } else { "are" }));
            } else if down + slow + unknown < board.monitors.len() && unknown == 0 {
                said.push("Everything else is working.".to_owned());
            }
        }
        Indicator::Unknown | Indicator::Operational | Indicator::Major => {}
    }
    if unknown > 0 && unknown < board.monitors.len() {
        said.push(format!("{unknown} {} no data.", if unknown == 1 { "has" } else { "have" }));
    }
    said.join(" ")
}
