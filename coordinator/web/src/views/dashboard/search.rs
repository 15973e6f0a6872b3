//! Search screen, whose results the palette shows too.

use parallax_template::template_file;

use super::frame::Frame;
use crate::views::assets;

/// Maximum pages and sections found.
const MAX_PLACES: usize = 10;

/// A result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SearchHit {
    /// CSS class.
    pub class: &'static str,
    /// Icon.
    pub icon: &'static str,
    /// Address.
    pub href: String,
    /// Name.
    pub text: String,
    /// Where it is, and its state.
    pub meta: String,
}

/// The search screen.
#[template_file("dashboard/search.html")]
#[derive(Debug, Clone)]
pub(crate) struct SearchScreen {
    frame: Frame,
    query: String,
    monitors: Vec<SearchHit>,
    places: Vec<SearchHit>,
}

impl SearchScreen {
    /// Builds the screen of the monitors that were found, and of the pages and sections whose words contain the query.
    pub(crate) fn new(frame: Frame, query: String, monitors: Vec<SearchHit>) -> Self {
        let wanted = query.trim().to_lowercase();
        let pages = frame.pages.iter().map(|entry| SearchHit {
            class: entry.class,
            icon: entry.class,
            href: format!("/app/pages/{}", entry.id),
            text: entry.name.clone(),
            meta: entry.address.clone(),
        });
        let items = frame.navigation().into_iter().chain(frame.installation()).chain([frame.account()]);
        let sections = items.map(|item| SearchHit {
            class: "",
            icon: item.icon,
            href: item.href,
            text: item.text.to_owned(),
            meta: String::new(),
        });
        let is_wanted =
            |hit: &SearchHit| hit.text.to_lowercase().contains(&wanted) || hit.meta.to_lowercase().contains(&wanted);
        let places = pages.chain(sections).filter(is_wanted).take(MAX_PLACES).collect();
        Self { frame, query, monitors, places }
    }
}
