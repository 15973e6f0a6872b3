//! Start page of the service itself: a short description and entry points for programs.

use askama::Template;
use parallax_template::template_file;

use super::assets;

/// The HTML document.
#[template_file("public/root.html")]
#[derive(Debug, Clone)]
pub(crate) struct StartPage<'a> {
    base: &'a str,
}

impl<'a> StartPage<'a> {
    /// Builds the start page; `base` is the service's URL.
    pub(crate) const fn new(base: &'a str) -> Self {
        Self { base }
    }

    /// Renders the document as HTML.
    pub(crate) fn html(&self) -> String {
        // Rendering to memory does not fail.
        self.render().unwrap_or_default()
    }
}
