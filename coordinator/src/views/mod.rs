//! Templates and their view models. Each view depends only on core values, so equal input gives equal output.
//!
//! A view is a struct of printable values, which its template escapes. The one exception is [`markdown`],
//! whose HTML is sanitized.

pub mod accent;
pub mod assets;
pub mod badge;
pub mod chart;
pub mod door;
pub mod embed;
pub mod feeds;
pub mod forms;
pub mod group;
pub mod headline;
pub mod incident;
pub mod markdown;
pub mod monitor;
pub mod notes;
pub mod page;
pub mod reference;
pub mod root;
pub mod share;
pub mod snippets;
pub mod strip;
pub mod tongue;
pub mod uptime;
pub mod words;

/// A view could not be rendered.
#[derive(Debug, thiserror::Error)]
#[error("can't render a page: {0}")]
pub struct Unprintable(#[from] askama::Error);

/// Renders a view.
///
/// # Errors
/// If the template fails, which ours don't.
pub fn print(view: &impl askama::Template) -> Result<Vec<u8>, Unprintable> {
    Ok(view.render()?.into_bytes())
}

#[cfg(test)]
pub(crate) mod tests;
