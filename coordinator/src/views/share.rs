//! What a link to a page shows where it is shared: a sentence, and a picture whose address changes with what it shows.

mod picture;

use std::fmt::Write;

use parallax_core::board::{Board, DAYS};
use parallax_core::headline::Indicator;
use sha2::{Digest, Sha256};

pub use picture::{Undrawn, draw};

use super::headline::Headline;
use super::strip::{Look, look_of};
use super::tongue::{fill, in_english, words};

/// What the picture is of; another one has another address.
const DRAWING: u8 = 1;

/// A page's state as a picture shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sight {
    /// Class of the whole.
    class: &'static str,
    /// The worst of each day, oldest first.
    days: Vec<Look>,
}

/// What is said of a page where it is shared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Share {
    /// Name and state.
    pub title: String,
    /// A line more.
    pub text: String,
    /// The page's address.
    pub url: String,
    /// The picture's.
    pub image: String,
}

impl Sight {
    /// What there is to see of a board.
    pub fn of(board: &Board) -> Self {
        let worst = |at: usize| {
            let days = board.monitors.iter().filter_map(|shown| shown.past.days.get(at));
            days.map(look_of).max_by_key(|look| rank(*look)).unwrap_or(Look::None)
        };
        Self { class: Headline::of(board).class, days: (0..DAYS).map(worst).collect() }
    }

    /// The part of its picture's address that changes with it: twelve hexadecimal digits.
    pub fn key(&self) -> String {
        let mut said = format!("{DRAWING}{}:", self.class);
        said.extend(self.days.iter().map(|day| day.class()));
        Sha256::digest(said.as_bytes()).iter().take(6).fold(String::new(), |mut key, byte| {
            // Writing to a text does not fail.
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

impl Share {
    /// What is said of a board whose page is at that address.
    pub fn of(board: &Board, address: &str) -> Self {
        let (headline, said) = (Headline::of(board), words(board.page.language));
        // A sentence of ours goes on after the name; a title that a person wrote stays as it is.
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
        Self {
            title: format!("{}: {title}", board.page.name),
            text,
            url: address.to_owned(),
            image: format!("{address}/og-{}.png", Sight::of(board).key()),
        }
    }
}

#[cfg(test)]
mod tests {
    use parallax_core::event::Status;

    use super::*;
    use crate::views::tests::board;

    #[test]
    fn a_link_says_the_state_and_its_picture_moves_with_it() {
        let told = board();
        let share = Share::of(&told, "https://x.example");
        assert_eq!(share.title, "Northwind: Payments API fails from Asia");
        let calm = Board { incidents: Vec::new(), indicator: Indicator::Operational, ..told };
        let well = Share::of(&calm, "https://x.example");
        assert_eq!(well.title, "Northwind: all systems operational");
        assert_ne!(share.image, well.image);
        let mut later = calm.clone();
        later.now = later.now + 1000;
        later.monitors[0].view.status = Status::Up;
        assert_eq!(Share::of(&later, "https://x.example").image, well.image);
        let key = Sight::of(&calm).key();
        assert!(key.len() == 12 && key.bytes().all(|byte| byte.is_ascii_hexdigit()), "{key}");
    }

    #[test]
    fn a_picture_of_each_state_is_drawn() {
        let board = board();
        for class in ["up", "slow", "part", "down", "none", "maint"] {
            let sight = Sight { class, ..Sight::of(&board) };
            let drawn = draw(&sight).unwrap();
            let read = png::Decoder::new(drawn.as_slice()).read_info().unwrap();
            assert_eq!((read.info().width, read.info().height), (1200, 630));
            assert!(drawn.len() < 30_000, "{}", drawn.len());
            if let Some(folder) = std::env::var_os("PARALLAX_SPECIMENS") {
                std::fs::write(std::path::Path::new(&folder).join(format!("og-{class}.png")), &drawn)
                    .unwrap();
            }
        }
    }
}
