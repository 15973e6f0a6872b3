//! A monitor's outages, put together from its changes of status.

use crate::event::{Change, Status};
use crate::observation::Failure;
use crate::place::RegionSet;
use crate::time::Timestamp;

/// A stretch of time in which a monitor was down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outage {
    /// When it began.
    pub from: Timestamp,
    /// When it ended; none while it lasts.
    pub to: Option<Timestamp>,
    /// Why, where that is known.
    pub reason: Option<Failure>,
    /// The regions that it was down from while others saw it up, when they were most; none where it was ever down
    /// everywhere.
    pub regions: Option<RegionSet>,
}

/// The wider of two scopes, of which none is everywhere: that of more regions, and of as many the first.
pub fn wider(one: Option<RegionSet>, other: Option<RegionSet>) -> Option<RegionSet> {
    let (one, other) = (one?, other?);
    Some(if other.len() > one.len() { other } else { one })
}

/// Outages as they come to light when changes are read backwards, newest first.
#[derive(Debug)]
pub struct Outages {
    /// When the outage began that lasts, as far as anybody knows.
    lasting: Option<Timestamp>,
    found: Vec<Outage>,
    /// The widest scope since the next outage that is found, where it had another than it began with.
    scope: Option<Option<RegionSet>>,
    /// What ends the next outage that is found; none where nothing does, or another begins.
    end: Option<End>,
}

/// What comes after an outage.
#[derive(Debug, Clone, Copy)]
enum End {
    /// It is back, and the outage that this ended began then, where the change says so.
    Back(Timestamp, Option<Timestamp>),
    /// Nothing was known any more.
    Silence(Timestamp),
}

impl Outages {
    /// None found yet; `lasting` is when the outage began that is on at present, known down or not.
    pub const fn new(lasting: Option<Timestamp>) -> Self {
        Self { lasting, found: Vec::new(), scope: None, end: None }
    }

    /// Takes the change in that came before those taken in so far.
    pub fn before(&mut self, change: Change) {
        // That it is still down is told again and again: it changes nothing, but says from where.
        if !change.is_transition() {
            if change.to == Status::Down {
                self.rescoped_before(change.down_from);
            }
            return;
        }
        match (change.to, self.end) {
            (Status::Up | Status::Slow, _) => {
                self.scope = None;
                self.end = Some(End::Back(change.since, change.down_since));
            }
            // A silence ends no outage: who is back after it says of which.
            (Status::Unknown, Some(End::Back(_, Some(_)))) => {}
            // No outage was on any more after it: the monitor was paused.
            (Status::Unknown, _) => self.end = Some(End::Silence(change.since)),
            (Status::Down, end) => {
                self.end = None;
                self.find(change, end);
            }
        }
    }

    /// Takes in that it was down from those regions from then on, or everywhere: before the changes taken in so far.
    pub fn rescoped_before(&mut self, regions: Option<RegionSet>) {
        self.scope = Some(match self.scope {
            Some(later) => wider(regions, later),
            None => regions,
        });
    }

    /// How many there are.
    pub const fn len(&self) -> usize {
        self.found.len()
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Those that were found, newest first.
    pub fn into_vec(self) -> Vec<Outage> {
        self.found
    }

    fn find(&mut self, change: Change, end: Option<End>) {
        let from = change.down_since.unwrap_or(change.since);
        self.rescoped_before(change.down_from);
        let (reason, regions) = (change.reason, self.scope.take().flatten());
        // Down once more after a silence, or told once more at the end of a window: how it began explains it.
        if let Some(same) = self.found.last_mut().filter(|newer| newer.from == from) {
            (same.reason, same.regions) = (reason, wider(regions, same.regions));
            return;
        }
        let to = match end {
            Some(End::Back(at, _)) => Some(at),
            Some(End::Silence(at)) => Some(at).filter(|_| self.lasting != Some(from)),
            None => None,
        };
        self.found.push(Outage { from, to, reason, regions });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A change in words: `down 5` (of the outage that began then), `still 5`, `silent 7`, `back 9` (of no outage that it
    /// knows of), `back 9 5`, `slow 9`.
    fn change(text: &str) -> Change {
        let words: Vec<&str> = text.split(' ').collect();
        let number = |at: usize| words.get(at).map(|word| Timestamp::from_millis(word.parse().unwrap()));
        let (from, to) = match words[0] {
            "down" => (Status::Up, Status::Down),
            "still" => (Status::Down, Status::Down),
            "silent" => (Status::Down, Status::Unknown),
            "slow" => (Status::Down, Status::Slow),
            "back" => (Status::Down, Status::Up),
            other => panic!("{other}"),
        };
        let mut change = Change::to(to, number(1).unwrap());
        change.from = from;
        change.down_since = if to == Status::Down { number(1) } else { number(2) };
        change.down_from = (change.to == Status::Down).then_some(RegionSet::ALL);
        change
    }

    #[test]
    fn an_outage_has_the_widest_scope_that_it_reached() {
        let regions = |text: &str| match text {
            "all" => None,
            names => Some(names.split('+').map(|name| name.parse().unwrap()).collect::<RegionSet>()),
        };
        // What the changes above say, each with a scope, and `scope`: another one from then on.
        for (story, expected) in [
            ("down 5 asia, back 9", &["asia"][..]),
            ("down 5 asia, scope asia+europe, scope europe, back 9", &["asia+europe"]),
            ("down 5 asia, scope all, scope asia+europe, scope asia, back 9", &["all"]),
            ("down 5 all, scope asia, back 9", &["all"]),
            ("down 5 asia, scope all", &["all"]),
            ("down 5 asia, scope europe, back 9", &["asia"]),
            // As far as it was told once more, where the journal has nothing else of it.
            ("down 5 asia, still 5 asia+europe, still 5 asia, back 9", &["asia+europe"]),
            ("down 5 asia, still 5 all, scope asia, back 9", &["all"]),
            // Each has its own, also where one ends in a silence.
            ("down 5 asia, scope all, back 9, down 12 europe, back 14", &["europe", "all"]),
            ("down 5 europe, back 9, down 12 asia, scope all, back 14", &["all", "europe"]),
            ("down 5 asia, scope all, silent 7, down 9 europe, back 12", &["europe", "all"]),
            ("down 5 asia, scope all, silent 7, down 5 asia, back 9", &["all"]),
            ("down 5 asia, silent 7, down 5 asia, scope all, scope europe, back 9", &["all"]),
            // The journal begins in the middle: what is not found leaves nothing behind.
            ("scope all, scope asia, back 9, down 12 europe, back 14", &["europe"]),
        ] {
            let mut outages = Outages::new(None);
            for told in story.rsplit(", ") {
                let (text, scope) = told.rsplit_once(' ').unwrap();
                match text {
                    "scope" => outages.rescoped_before(regions(scope)),
                    "back" | "silent" => outages.before(change(told)),
                    _ => outages.before(Change { down_from: regions(scope), ..change(text) }),
                }
            }
            let found: Vec<_> = outages.into_vec().into_iter().map(|outage| outage.regions).collect();
            assert_eq!(found, expected.iter().map(|text| regions(text)).collect::<Vec<_>>(), "{story}");
        }
    }

    #[test]
    fn each_outage_is_one_and_ends_when_it_did() {
        for (story, lasting, expected) in [
            ("", None, ""),
            ("down 5", Some(5), "5-"),
            ("down 5, back 9 5", None, "5-9"),
            ("down 5, slow 9 5", None, "5-9"),
            ("down 5, back 9 5, down 12", Some(12), "12- 5-9"),
            // Words on one that lasts.
            ("down 5, still 5, still 5, back 9 5", None, "5-9"),
            ("down 5, still 5, back 9 5, down 12, still 12, still 12", Some(12), "12- 5-9"),
            // A silence in between, at the end, and before it is back.
            ("down 5, silent 7, down 5, still 5, back 9 5", None, "5-9"),
            ("down 5, silent 6, down 5, silent 7, down 5", Some(5), "5-"),
            ("down 5, silent 7", Some(5), "5-"),
            ("down 5, silent 7, back 9 5", None, "5-9"),
            // A pause drops the outage, and whatever comes after is news.
            ("down 5, silent 7", None, "5-7"),
            ("down 5, silent 7, back 9", None, "5-7"),
            ("down 5, silent 7, down 9, back 12 9", None, "9-12 5-7"),
            ("down 5, back 9 5, silent 10, back 11", None, "5-9"),
            // Told at the end of a window, begun or ended within it.
            ("down 5, down 5, back 9 5", None, "5-9"),
            ("down 5, back 9 5, down 12, back 14 12, back 14 5", None, "12-14 5-9"),
            // The journal begins in the middle.
            ("still 5, back 9 5, down 12", Some(12), "12-"),
        ] {
            let mut outages = Outages::new(lasting.map(Timestamp::from_millis));
            story.rsplit(", ").filter(|it| !it.is_empty()).for_each(|it| outages.before(change(it)));
            let told = |outage: &Outage| {
                let to = outage.to.map_or_else(String::new, |to| to.as_millis().to_string());
                format!("{}-{to}", outage.from.as_millis())
            };
            let found = outages.into_vec();
            assert!(found.iter().all(|outage| outage.regions == Some(RegionSet::ALL)), "{story}: {found:?}");
            assert_eq!(found.iter().map(told).collect::<Vec<_>>().join(" "), expected, "{story}");
        }
    }
}
