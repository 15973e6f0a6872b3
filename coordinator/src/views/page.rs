//! The public page as a whole, and what every page around it has in common.

use askama::Template;
use parallax_core::board::{Board, Notice, Range, worst_first};
use parallax_core::page::Page;
use parallax_core::page::look::Theme;
use parallax_core::time::Timestamp;

use super::assets;
use super::group::{Group, groups};
use super::headline::Headline;
use super::incident::{Card, PastDay, past_days};
use super::monitor;
use super::share::Share;
use super::strip;
use super::tongue::{Voice, Words, fill};
use super::words::{self, Moment};

/// Days of the past that the page lists.
const PAST_DAYS: u64 = 7;

/// Windows beyond the next week that the page lists; the calendar has all of them.
const LATER: usize = 20;

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
    /// Whether its visitors were let in, and may want out again.
    pub guarded: bool,
    /// The theme that its owner chose, where one is chosen.
    pub theme: Option<&'static str>,
    /// Address of its accent colour's style sheet.
    pub accent: Option<String>,
    /// Address of its logo.
    pub logo: Option<String>,
    /// Address and media type of its own icon.
    pub icon: Option<(String, &'static str)>,
    /// What a link to it shows where it is shared, and its best address; none of what nobody shares.
    pub share: Option<Share>,
    /// When it was written.
    pub written: Moment,
    /// The words of its language.
    pub t: &'static Words,
}

impl Frame {
    /// The frame of a document of that page.
    pub fn new(page: &Page, root: &str, title: &str, now: Timestamp) -> Self {
        let voice = Voice::of(page);
        Self {
            name: page.name.clone(),
            description: page.description.clone(),
            support: page.support_url.as_deref().and_then(words::link),
            root: root.to_owned(),
            base: root.strip_suffix(&format!("/p/{}", page.slug)).unwrap_or_default().to_owned(),
            home: if root.is_empty() { "/".to_owned() } else { root.to_owned() },
            title: fill(voice.words.title, &[title, &page.name]),
            zone: page.timezone.name(),
            noindex: page.noindex || page.private || page.password.is_some(),
            guarded: page.private || page.password.is_some(),
            theme: Some(page.look.theme).filter(|theme| *theme != Theme::Auto).map(Theme::name),
            accent: page
                .look
                .accent
                .map(|it| format!("{root}/accent/{}", it.to_string().trim_start_matches('#'))),
            logo: page.look.logo.map(|it| format!("{root}/logo/{}", it.hex())),
            icon: page.look.favicon.map(|it| (format!("{root}/favicon/{}", it.hex()), it.kind.media())),
            share: None,
            written: words::moment(now, voice),
            t: voice.words,
        }
    }

    /// The same of what may be shared as that.
    pub(super) fn shared_as(self, share: Share) -> Self {
        Self { share: Some(share), ..self }
    }

    /// Whose zones times and days are in: the visitor's, which the script puts in, and the page's.
    pub(super) fn times_own(&self) -> String {
        fill(self.t.times_own, &["{0}", self.zone])
    }

    /// A pattern of its words with one value in it.
    pub(super) fn say(&self, pattern: &str, value: impl AsRef<str>) -> String {
        fill(pattern, &[value.as_ref()])
    }
}

/// A document without the moment at which it was written: the last element of that name, since texts of people come before
/// it and hold no markup. The rest is what its readers know it by.
pub fn undated(document: &[u8]) -> Vec<u8> {
    const FROM: &[u8] = b"<time id=\"written\"";
    const TO: &[u8] = b"</time>";
    let find = |part: &[u8], text: &[u8]| text.windows(part.len()).rposition(|it| it == part);
    match (find(FROM, document), find(TO, document)) {
        (Some(from), Some(to)) if from < to => [&document[..from], &document[to..]].concat(),
        _ => document.to_vec(),
    }
}

/// One of the ranges that can be chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// Its address.
    pub href: String,
    /// Its length in words.
    pub name: &'static str,
    /// Whether it is the one that is shown.
    pub is_shown: bool,
}

/// The ranges of a document at that address.
pub fn choices(path: &str, shown: Range, words: &Words) -> Vec<Choice> {
    let choice = |range: Range| Choice {
        href: format!("{path}{}", monitor::query(range)),
        name: strip::length(range, words),
        is_shown: range == shown,
    };
    Range::ALL.into_iter().map(choice).collect()
}

/// The status page.
#[derive(Debug, Clone, Template)]
#[template(path = "public/page.html")]
pub struct StatusPage {
    frame: Frame,
    headline: Headline,
    open: Vec<Card>,
    ranges: Vec<Choice>,
    groups: Vec<Group>,
    /// Maintenance that is planned for later than the next week.
    later: Vec<Card>,
    /// How many more windows of those there are.
    more_later: usize,
    past: Vec<PastDay>,
}

impl StatusPage {
    /// The page of a board, whose paths begin with `root`, and which is best found at that address.
    pub fn new(board: &Board, root: &str, address: &str) -> Self {
        let (page, now) = (&board.page, board.now);
        let voice = Voice::of(page);
        let card = |notice: &Notice| Card::of(notice, root, voice, now, true);
        let headline = Headline::of(board);
        let frame =
            Frame::new(page, root, &headline.title, now).shared_as(Share::of(board, &headline, address));
        Self {
            ranges: choices(&frame.home, board.range, voice.words),
            frame,
            headline,
            open: worst_first(board.incidents.iter().chain(&board.maintenance))
                .into_iter()
                .map(card)
                .collect(),
            groups: groups(board, root),
            later: board.later.iter().take(LATER).map(card).collect(),
            more_later: board.later.len().saturating_sub(LATER),
            past: past_days(board, root, PAST_DAYS),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_known_by_all_but_the_moment_at_which_it_was_written() {
        let written = |said: &str, at: &str| {
            undated(format!("<p>{said}</p><time id=\"written\" datetime=\"{at}\">{at}</time>.").as_bytes())
        };
        assert_eq!(written("up", "12:46"), written("up", "12:47"));
        assert_ne!(written("up", "12:46"), written("down", "12:46"));
        let bare = b"<time>12:46</time>";
        assert_eq!(undated(bare), bare);
    }
}
