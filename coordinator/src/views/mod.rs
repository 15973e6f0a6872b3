//! Templates and what they print: every view is made of core's values alone, and says the same for the same.
//!
//! A view is a struct of ready-to-print values, which its template escapes as it prints them. The one exception is
//! [`markdown`], which gives markup that was cut down to what is allowed.

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

/// A view that can't be printed.
#[derive(Debug, thiserror::Error)]
#[error("a view can't be printed: {0}")]
pub struct Unprintable(#[from] askama::Error);

/// Prints a view.
///
/// # Errors
/// Where its template gives up, which none of ours does.
pub fn print(view: &impl askama::Template) -> Result<Vec<u8>, Unprintable> {
    Ok(view.render()?.into_bytes())
}

#[cfg(test)]
pub(crate) mod tests;
