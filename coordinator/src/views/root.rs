//! The root of the service itself, which belongs to no page: what this is, and where programs begin.

use askama::Template;

use super::assets;

/// The document.
#[derive(Debug, Clone, Template)]
#[template(path = "public/root.html")]
pub struct RootPage<'a> {
    base: &'a str,
}

impl<'a> RootPage<'a> {
    /// That of the service at that address.
    pub const fn new(base: &'a str) -> Self {
        Self { base }
    }

    /// The document as HTML.
    pub fn html(&self) -> String {
        // Writing to memory does not fail.
        self.render().unwrap_or_default()
    }
}
