//! Link previews (Open Graph): a title, a text, and an image whose URL changes with its content.

mod lettering;
mod picture;

use std::fmt::Write;

use parallax_core::board::{Board, DAYS, Notice, Range, Shown};
use parallax_core::headline::Indicator;
use parallax_core::page::Page;
use sha2::{Digest, Sha256};

pub use picture::{Undrawn, draw};

use super::headline::Headline;
use super::incident::Card;
use super::monitor::{Close, State};
use super::strip::{Glance, Look, look_of};
use super::tongue::{fill, in_english, words};
use super::uptime::Uptime;
use super::{markdown, words};

/// Version of the image's design; it is part of the image's URL.
const DRAWING: u8 = 2;
/// Maximum length of a text in characters.
const MOST: usize = 200;

/// Content of a preview image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sight {
    /// CSS class of the overall status.
    class: &'static str,
    /// Name of the page and headline.
    words: [String; 2],
    /// Worst state of each day, oldest first: a week, or as many days as the range that the age of the
    /// monitors fills.
    days: Vec<Look>,
}

/// Link preview of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Share {
    /// Name and status.
    pub title: String,
    /// Additional text.
    pub text: String,
    /// URL of the page.
    pub url: String,
    /// URL of the image.
    pub image: String,
}

impl Sight {
    /// Extracts the image's content from a page view.
    pub fn of(board: &Board) -> Self {
        let is_stale = board.is_stale();
        let worst = |at: usize| {
            let look = |shown: &Shown| {
                let is_present = !is_stale && at + 1 == shown.past.days.len();
                shown.past.days.get(at).map(|day| look_of(shown, day, is_present))
            };
            board.monitors.iter().filter_map(look).max_by_key(|look| rank(*look)).unwrap_or(Look::None)
        };
        let headline = Headline::of(board);
        let words = [board.page.name.clone(), headline.title];
        let made = board.monitors.iter().map(|shown| shown.monitor.created_at).min();
        let (range, _) = Range::filled_since(made.unwrap_or(board.page.created_at), board.now);
        let days = range.days().max(Range::Week.days());
        Self { class: headline.class, words, days: (DAYS - days..DAYS).map(worst).collect() }
    }

    /// Content hash in the image's URL: twelve hexadecimal digits.
    pub fn key(&self) -> String {
        let mut said = format!("{DRAWING}{}:", self.class);
        said.extend(self.days.iter().map(|day| day.class()));
        for words in &self.words {
            said.push('\n');
            said += words;
        }
        Sha256::digest(said.as_bytes()).iter().take(6).fold(String::new(), |mut key, byte| {
            // Writing to a string does not fail.
            let _ = write!(key, "{byte:02x}");
            key
        })
    }
}

const fn rank(look: Look) -> u8 {
    match look {
        Look::None => 0,
        Look::Maintenance => 1,
        Look::Up => 2,
        Look::Slow => 3,
        Look::Short => 4,
        Look::Down => 5,
    }
}

/// Canonical URL of a page and key of its preview image.
#[derive(Debug, Clone, Copy)]
pub struct Found<'a> {
    /// URL, without a trailing slash.
    pub address: &'a str,
    /// Key of its [`Sight`].
    pub picture: &'a str,
}

impl Share {
    /// Builds the preview of the status page.
    pub fn of(board: &Board, headline: &Headline, address: &str) -> Self {
        let said = words(board.page.language);
        // A built-in sentence is lowercased after the name; a user-written title is left as it is.
        let hardly = in_english().seen_operational;
        let is_ours =
            headline.title == hardly || Indicator::ALL.iter().any(|one| one.headline() == headline.title);
        let mut letters = headline.title.chars();
        let title = match letters.next() {
            Some(first) if is_ours => first.to_lowercase().chain(letters).collect(),
            Some(_) | None => headline.title.clone(),
        };
        let text = match (&headline.text, &board.page.description) {
            (text, _) if !text.is_empty() => text.clone(),
            (_, Some(description)) => description.clone(),
            (_, None) => fill(said.title, &[&headline.title, &board.page.name]),
        };
        Self::new(&board.page, &title, text, "", Found { address, picture: &Sight::of(board).key() })
    }

    /// Builds the preview of an incident or window: kind, affected monitors, and newest update.
    pub(super) fn of_incident(page: &Page, notice: &Notice, card: &Card, found: Found<'_>) -> Self {
        let last = notice.incident.updates.last().zip(card.updates.first());
        let last = last.map(|(update, said)| format!("{}: {}", said.status, markdown::plain(&update.body)));
        let was = card.was.unwrap_or_default();
        let parts = [card.kind, was, &card.monitors, last.as_deref().unwrap_or_default()];
        let text = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" · ");
        Self::new(page, &card.title, text, &format!("/incidents/{}", notice.incident.id), found)
    }

    /// Builds the preview of a monitor: state and uptime.
    pub(super) fn of_monitor(close: &Close<'_>, found: Found<'_>) -> Self {
        let said = words(close.page.language);
        let shown = close.shown;
        let glance = Glance { range: Range::Quarter, ..Glance::of_monitor(close) };
        let state = State::of(shown, close.is_stale, said).words;
        let text = format!("{state} · {}", Uptime::of(shown, glance).text());
        Self::new(close.page, &shown.monitor.name, text, &format!("/monitors/{}", shown.monitor.id), found)
    }

    /// Builds the preview of a month: number of incidents.
    pub(super) fn of_month(
        page: &Page,
        (year, month): (i32, u32),
        notices: &[Notice],
        found: Found<'_>,
    ) -> Self {
        let said = words(page.language);
        let name = words::month(year, month, said);
        let text = match notices.iter().filter(|notice| notice.trouble().is_some()).count() {
            0 => fill(said.none_in, &[&name]),
            count => said.tongue().count(count as u64, said.one_incident, said.incidents),
        };
        let title = fill(said.history_of, &[&name]);
        Self::new(page, &title, text, &format!("/history/{year:04}-{month:02}"), found)
    }

    fn new(page: &Page, title: &str, text: String, path: &str, found: Found<'_>) -> Self {
        let Found { address, picture } = found;
        Self {
            title: format!("{}: {title}", page.name),
            text: shortened(text),
            url: format!("{address}{path}"),
            image: format!("{address}/og-{picture}.png"),
        }
    }
}

/// Truncates a text to the length that previews show.
fn shortened(text: String) -> String {
    if text.chars().count() <= MOST {
        return text;
    }
    text.chars().take(MOST - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use parallax_core::event::Status;
    use parallax_core::time::DAY;

    use super::*;
    use crate::views::tests::board;

    fn share(board: &Board) -> Share {
        Share::of(board, &Headline::of(board), "https://x.example")
    }

    #[test]
    fn a_day_on_which_something_is_down_is_no_good_one() {
        let mut board = board();
        let today = |board: &Board| *Sight::of(board).days.last().unwrap();
        board.monitors.iter_mut().for_each(|shown| shown.past.days = good_days());
        assert_eq!(today(&board), Look::Short);
        board.monitors[2].view.status = Status::Up;
        assert_eq!(today(&board), Look::Up);
    }

    /// Days with only passed rounds.
    fn good_days() -> Vec<parallax_core::board::Day> {
        let mut days = crate::views::tests::shown(1, "Web shop", "Shop", Status::Up, 0).past.days;
        for day in &mut days {
            (day.counts.passed, day.uptime) = (60, Some(100.0));
        }
        days
    }

    #[test]
    fn a_picture_shows_the_days_that_the_age_fills() {
        let mut board = board();
        for (age, days) in [(0, 7), (7 * DAY - 1, 7), (8 * DAY, 30), (40 * DAY, 90), (400 * DAY, 90)] {
            for shown in &mut board.monitors {
                shown.monitor.created_at = board.now - age;
            }
            let sight = Sight::of(&board);
            assert_eq!(sight.days.len(), days, "{age}");
            assert!(draw(&sight).unwrap().len() < 60_000);
        }
    }

    #[test]
    fn a_link_says_the_state_and_its_picture_moves_with_it() {
        let told = board();
        assert_eq!(share(&told).title, "Northwind: Payments API fails from Asia");
        let mut calm = Board { incidents: Vec::new(), indicator: Indicator::Operational, ..told.clone() };
        assert_eq!(share(&calm).title, "Northwind: everything we have data for is working");
        calm.monitors.retain(|shown| shown.view.status != Status::Unknown);
        let well = share(&calm);
        assert_eq!(well.title, "Northwind: all systems operational");
        assert_ne!(share(&told).image, well.image);
        let mut later = calm.clone();
        later.now = later.now + 1000;
        later.monitors[0].view.status = Status::Up;
        assert_eq!(share(&later).image, well.image);
        let key = Sight::of(&calm).key();
        assert!(key.len() == 12 && key.bytes().all(|byte| byte.is_ascii_hexdigit()), "{key}");
    }

    #[test]
    fn a_link_to_an_incident_says_what_it_is_and_the_last_word_on_it() {
        let board = board();
        let notice = &board.incidents[0];
        let card = Card::of(notice, "", crate::views::tongue::Voice::of(&board.page), board.now, false);
        let found = Found { address: "https://x.example", picture: "0123456789ab" };
        let share = Share::of_incident(&board.page, notice, &card, found);
        assert_eq!(share.image, "https://x.example/og-0123456789ab.png");
        assert_eq!(
            share.text,
            "Partial outage · Payments API · Identified: A transit provider in Singapore drops our traffic. We are moving to \
             another one."
        );
        assert_eq!(shortened("é".repeat(MOST)).chars().count(), MOST);
        let long = shortened("é".repeat(MOST + 1));
        assert!(long.chars().count() == MOST && long.ends_with("é…"), "{long}");
    }

    #[test]
    fn a_picture_of_a_name_that_no_letter_is_there_for_has_no_text() {
        let sight = |name: &str| {
            let board = board();
            Sight::of(&Board { page: Page { name: name.to_owned(), ..board.page.clone() }, ..board })
        };
        let [plain, other] = ["Northwind", "Southwind"].map(sight);
        assert_ne!(plain.key(), other.key());
        assert_ne!(draw(&plain).unwrap(), draw(&other).unwrap());
        let [one, two] = ["北風", "南風"].map(sight);
        assert_ne!(one.key(), two.key());
        assert_eq!(draw(&one).unwrap(), draw(&two).unwrap());
        let long = Sight { words: ["W".repeat(60), "Wolves ".repeat(60)], ..plain };
        assert!(draw(&long).unwrap().len() < 60_000);
    }

    #[test]
    fn a_picture_of_each_state_is_drawn() {
        let board = board();
        for class in ["up", "slow", "part", "down", "none", "maint"] {
            let sight = Sight { class, ..Sight::of(&board) };
            let drawn = draw(&sight).unwrap();
            let read = png::Decoder::new(drawn.as_slice()).read_info().unwrap();
            assert_eq!((read.info().width, read.info().height), (1200, 630));
            assert!(drawn.len() < 60_000, "{}", drawn.len());
            if let Some(folder) = std::env::var_os("PARALLAX_SPECIMENS") {
                std::fs::write(std::path::Path::new(&folder).join(format!("og-{class}.png")), &drawn)
                    .unwrap();
            }
        }
    }
}
