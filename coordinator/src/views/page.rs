//! The public page as a whole, and what every page around it has in common.

use std::collections::BTreeMap;

use askama::Template;
use chrono::NaiveDate;
use parallax_core::board::{Board, Notice, Shown};
use parallax_core::page::Page;
use parallax_core::rollup::day_of;
use parallax_core::time::Timestamp;

use super::assets;
use super::headline::Headline;
use super::incident::{Card, PastDay, past_days};
use super::monitor::Row;
use super::share::Share;
use super::words::{self, Moment};

/// Days of the past that the page lists.
const PAST_DAYS: u64 = 7;

/// What every page around a status page has in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// The page's name.
    pub name: String,
    /// One line about it.
    pub description: Option<String>,
    /// A safe link for help.
    pub support: Option<String>,
    /// What its paths begin with.
    pub root: String,
    /// Its own address.
    pub home: String,
    /// What the paths of files begin with.
    pub base: String,
    /// What the document is called.
    pub title: String,
    /// IANA zone that times are in.
    pub zone: &'static str,
    /// Whether it must not be found by searches.
    pub noindex: bool,
    /// When it was written.
    pub written: Moment,
}

impl Frame {
    /// The frame of a document of that page.
    pub fn new(page: &Page, root: &str, title: &str, now: Timestamp) -> Self {
        Self {
            name: page.name.clone(),
            description: page.description.clone(),
            support: page.support_url.as_deref().and_then(words::link),
            root: root.to_owned(),
            base: root.strip_suffix(&format!("/p/{}", page.slug)).unwrap_or_default().to_owned(),
            home: if root.is_empty() { "/".to_owned() } else { root.to_owned() },
            title: format!("{title} - {} status", page.name),
            zone: page.timezone.name(),
            noindex: page.private || page.password.is_some(),
            written: words::moment(now, page.timezone),
        }
    }
}

/// The status page.
#[derive(Debug, Clone, Template)]
#[template(path = "public/page.html")]
pub struct StatusPage {
    frame: Frame,
    headline: Headline,
    open: Vec<Card>,
    groups: Vec<Group>,
    past: Vec<PastDay>,
    share: Option<Share>,
}

/// Monitors that are shown together.
#[derive(Debug, Clone)]
struct Group {
    name: Option<String>,
    rows: Vec<Row>,
}

impl StatusPage {
    /// The page of a board, whose paths begin with `root`.
    pub fn new(board: &Board, root: &str) -> Self {
        let (page, zone, now) = (&board.page, board.page.timezone, board.now);
        let card = |notice: &Notice| Card::of(notice, root, zone, now, true);
        let headline = Headline::of(board);
        let notices = || board.incidents.iter().chain(&board.maintenance).chain(&board.past);
        let past = board.past.iter().map(|notice| (notice.incident.started_at, card(notice))).collect();
        Self {
            frame: Frame::new(page, root, &headline.title, now),
            headline,
            open: board.incidents.iter().chain(&board.maintenance).map(card).collect(),
            groups: groups(board, root, |shown| incidents_by_day(shown, notices(), board)),
            past: day_of(now, zone).map(|today| past_days(past, today, PAST_DAYS, zone)).unwrap_or_default(),
            share: None,
        }
    }

    /// The same, with what a link to it shows where it is shared.
    #[must_use]
    pub fn shared_as(self, share: Share) -> Self {
        Self { share: Some(share), ..self }
    }
}

/// Groups in the order of their first monitors; each keeps the page's order.
fn groups(board: &Board, root: &str, incidents: impl Fn(&Shown) -> BTreeMap<NaiveDate, usize>) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for shown in &board.monitors {
        let row = Row::of(shown, board, root, &incidents(shown));
        match groups.iter_mut().find(|group| group.name == shown.monitor.group) {
            Some(group) => group.rows.push(row),
            None => groups.push(Group { name: shown.monitor.group.clone(), rows: vec![row] }),
        }
    }
    groups
}

/// How many incidents of a monitor began on which day.
fn incidents_by_day<'a>(
    shown: &Shown,
    notices: impl Iterator<Item = &'a Notice>,
    board: &Board,
) -> BTreeMap<NaiveDate, usize> {
    let mut days = BTreeMap::new();
    let concerns = |notice: &&Notice| {
        notice.incident.kind == parallax_core::incident::Kind::Incident
            && notice.incident.affected.iter().any(|affected| affected.monitor == shown.monitor.id)
    };
    for notice in notices.filter(concerns) {
        if let Some(day) = day_of(notice.incident.started_at, board.page.timezone) {
            *days.entry(day).or_default() += 1;
        }
    }
    days
}
