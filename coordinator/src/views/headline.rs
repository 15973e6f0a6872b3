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
        let whole = Whole::of(board);
        let class = match whole {
            Whole::HardlySeen | Whole::Seen(Indicator::Unknown) => "none",
            Whole::Seen(Indicator::Operational) => "up",
            Whole::Seen(Indicator::Degraded) => "slow",
            Whole::Seen(Indicator::Partial) => "part",
            Whole::Seen(Indicator::Major) => "down",
            Whole::Seen(Indicator::Maintenance) => "maint",
        };
        let (title, text) = (title(board, whole, said), text(board, whole, said));
        Self { class, title, text, regions, lead, checked }
    }
}

/// How a page is as a whole, as people are told it. The indicator is for programs, and by its rule a paused monitor is
/// one that is not down, and a single one that is up speaks for all of which nothing is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whole {
    /// As the indicator has it, but that only what is watched counts.
    Seen(Indicator),
    /// Nothing is wrong with what is seen, and of half of what is watched or more nothing is.
    HardlySeen,
}

impl Whole {
    /// How that page is.
    pub(super) fn of(board: &Board) -> Self {
        let is_watched = |shown: &&Shown| !shown.monitor.paused && !shown.covered;
        let watched = board.monitors.iter().filter(is_watched).count();
        let down = board.with_status(Status::Down).filter(is_watched).count();
        let is_partly = |shown: &Shown| shown.view.down_from.is_some();
        let are_partly = down > 0 && board.with_status(Status::Down).filter(is_watched).all(is_partly);
        match board.indicator {
            // Whatever is down from some regions is up from others.
            Indicator::Major if worst(board).is_none() && are_partly => Self::Seen(Indicator::Partial),
            Indicator::Operational if watched > 0 && unknown(board) * 2 >= watched => Self::HardlySeen,
            Indicator::Partial if worst(board).is_none() && down == watched && !are_partly => {
                Self::Seen(Indicator::Major)
            }
            other => Self::Seen(other),
        }
    }
}

/// How many of the monitors that are watched nothing is known of.
fn unknown(board: &Board) -> usize {
    board.with_status(Status::Unknown).filter(|shown| !shown.monitor.paused).count()
}

/// The open incident of the worst impact, where one has any.
fn worst(board: &Board) -> Option<&Notice> {
    let worst = board.incidents.iter().max_by_key(|notice| notice.incident.impact);
    worst.filter(|worst| worst.incident.impact > Impact::None)
}

/// How many monitors are there, but for those that nobody is to watch.
fn services(board: &Board) -> usize {
    board.monitors.iter().filter(|shown| !shown.monitor.paused).count()
}

fn title(board: &Board, whole: Whole, said: &Words) -> String {
    if let Some(worst) = worst(board) {
        return worst.incident.title.clone();
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
        // Not all is claimed where one is not known of.
        Whole::Seen(Indicator::Operational) if unknown(board) > 0 => said.seen_operational,
        Whole::Seen(Indicator::Operational) => said.all_operational,
        Whole::Seen(Indicator::Degraded) => said.some_slow,
        Whole::Seen(Indicator::Partial) => said.some_down,
        Whole::Seen(Indicator::Major) => said.all_down,
        Whole::Seen(Indicator::Maintenance) => said.in_maintenance_now,
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
        more => Some(fill(many, &[&more.len().to_string(), &services(board).to_string()])),
    }
}

/// What the title leaves open: how the others are.
fn text(board: &Board, whole: Whole, said: &Words) -> String {
    let count = |status| board.with_status(status).count();
    let is_told = |shown: &Shown| {
        let names = |notice: &Notice| notice.monitors.iter().any(|(id, ..)| *id == shown.monitor.id);
        board.incidents.iter().any(names)
    };
    let (down, slow, unknown) = (count(Status::Down), count(Status::Slow), unknown(board));
    let is_maintained = board.monitors.iter().any(|shown| shown.covered);
    let mut sentences = Vec::new();
    if worst(board).is_some() {
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
                sentences.push(fill(said.under_way, &[&said.tongue().list(&names)]));
            }
        }
        Whole::Seen(Indicator::Partial | Indicator::Degraded) => {
            // The title names no regions where it is of several.
            let from: Option<Vec<_>> =
                board.with_status(Status::Down).map(|shown| shown.view.down_from).collect();
            if let Some(from) = from.filter(|from| from.len() > 1 && worst(board).is_none()) {
                let regions = from.iter().flat_map(|regions| regions.iter()).collect();
                sentences.push(fill(said.state_down_from, &[&said.tongue().regions(regions)]));
            }
            if down > 0 && slow > 0 {
                sentences.push(said.tongue().count(slow as u64, said.more_is_slow, said.more_are_slow));
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
mod tests {
    use parallax_core::place::{Region, RegionSet};

    use super::*;
    use crate::views::tests::{board, shown};

    /// A page without incidents of monitors by a letter each: up, slow, down, unknown, paused, in a window (and down).
    fn page(letters: &str) -> Board {
        let monitor = |(at, letter): (usize, char)| {
            let status = match letter {
                'u' => Status::Up,
                's' => Status::Slow,
                'd' | 'w' => Status::Down,
                _ => Status::Unknown,
            };
            let number = u32::try_from(at).unwrap() + 1;
            let mut shown = shown(number, &format!("M{number}"), "Shop", status, 2);
            (shown.monitor.paused, shown.covered) = (letter == 'p', letter == 'w');
            shown
        };
        let monitors: Vec<Shown> = letters.chars().enumerate().map(monitor).collect();
        let judged = monitors.iter().filter(|shown| !shown.covered).map(|shown| shown.view.status);
        let indicator = Indicator::of(None, judged, false);
        Board { incidents: Vec::new(), maintenance: Vec::new(), indicator, monitors, ..board() }
    }

    #[test]
    fn what_reports_itself_was_not_checked_by_us() {
        use parallax_core::check::Check;
        use parallax_core::time::MINUTE;

        let now = board().now;
        // Each monitor: what it is (a heartbeat, or paused), and minutes since its last check.
        for (monitors, checked, regions) in [
            ("", None, 0),
            ("h1", Some(1), 0),
            ("h1 m5", Some(5), 6),
            ("h1 m5 m3", Some(3), 6),
            ("h1 p5", Some(1), 0),
            ("h1 m", Some(1), 0),
            ("m", None, 0),
        ] {
            let monitor = |(at, text): (usize, &str)| {
                let mut shown = page("u").monitors.remove(0);
                let (kind, ago) = text.split_at(1);
                let ago: Option<i64> = ago.parse().ok();
                match (&mut shown.view.last_check, ago) {
                    (Some(last), Some(ago)) => last.at = now - ago * MINUTE,
                    (last, _) => *last = None,
                }
                shown.monitor.id = parallax_core::id::MonitorId::from_u128(at as u128);
                shown.monitor.paused = kind == "p";
                if kind == "h" {
                    let beat = parallax_core::check::HeartbeatCheck {
                        period_seconds: 60,
                        grace_seconds: 60,
                        token: String::new(),
                    };
                    shown.monitor.check = Check::Heartbeat(beat);
                    shown.past.lanes.clear();
                }
                shown
            };
            let monitors_of: Vec<Shown> = monitors.split_whitespace().enumerate().map(monitor).collect();
            let board = Board { monitors: monitors_of, ..board() };
            let seen = board.checked().map(|at| now.since(at) / MINUTE);
            assert_eq!((seen, board.seen_from().len()), (checked, regions), "{monitors}");
        }
    }

    #[test]
    fn a_headline_claims_no_more_than_is_seen() {
        for (monitors, class, title, text) in [
            ("uuu", "up", "All systems operational", ""),
            ("uu?", "up", "Everything we have data for is working", "1 has no data."),
            ("u?", "none", "Everything we have data for is working", "1 has no data."),
            ("u?????????", "none", "Everything we have data for is working", "9 have no data."),
            // Nobody waits for news of what is paused.
            ("upppppp", "up", "All systems operational", ""),
            ("uup?", "up", "Everything we have data for is working", "1 has no data."),
            ("u?p", "none", "Everything we have data for is working", "1 has no data."),
            (
                "u?w",
                "none",
                "Everything we have data for is working",
                "Maintenance is under way. 1 has no data.",
            ),
            ("??p", "none", "No data yet", ""),
            ("pp", "none", "No data yet", ""),
            ("ddd", "down", "All systems are down", ""),
            ("dddp", "down", "All systems are down", ""),
            ("duw", "part", "M1 is down", ""),
            ("dp", "down", "M1 is down", ""),
            ("ddduupp", "part", "3 of 5 services are down", "Everything else is working."),
            ("dd?p", "part", "M1 and M2 are down", "1 has no data."),
            ("sup", "slow", "M1 is slow", "Everything else is working."),
        ] {
            let Headline { class: drawn, title: said, text: more, .. } = Headline::of(&page(monitors));
            assert_eq!((drawn, said.as_str(), more.as_str()), (class, title, text), "{monitors}");
        }
        for (monitors, title, text) in [
            ("d", "M1 is down from Asia", ""),
            ("dd", "M1 and M2 are down", "Down from Asia."),
            ("ddu", "M1 and M2 are down", "Down from Asia. Everything else is working."),
        ] {
            let mut board = page(monitors);
            for down in board.monitors.iter_mut().filter(|shown| shown.view.status == Status::Down) {
                down.view.down_from = Some(RegionSet::only(Region::Asia));
            }
            let Headline { class, title: said, text: more, .. } = Headline::of(&board);
            assert_eq!((class, said.as_str(), more.as_str()), ("part", title, text), "{monitors} from Asia");
        }
        let told = Board { indicator: Indicator::Partial, monitors: page("dd").monitors, ..board() };
        assert_eq!(Headline::of(&told).class, "part", "an incident speaks first");
    }
}
