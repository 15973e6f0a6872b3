//! Templates and their view models. Each view depends only on core values, so equal input gives equal output.
//!
//! A view is a struct of printable values, which its template escapes. The one exception is the
//! [`Markup`](crate::markdown::Markup) of users' texts, which is sanitized.

pub mod accent;
pub mod access_pages;
pub mod api_reference;
pub mod assets;
pub mod badge;
pub mod chart;
pub mod embed;
pub mod embed_snippets;
pub mod feeds;
pub mod format;
pub mod frame;
pub mod headline;
pub mod incident;
pub mod incident_card;
pub mod link_preview;
pub mod markdown_page;
pub mod messages;
pub mod monitor;
pub mod monitor_detail;
pub mod monitor_groups;
pub mod monitor_state;
pub mod page;
pub mod range_context;
pub mod ranges;
pub mod start_page;
pub mod subscription_forms;
pub mod uptime;
pub mod uptime_bars;

/// A view could not be rendered.
#[derive(Debug, thiserror::Error)]
#[error("can't render a page: {0}")]
pub struct RenderError(#[from] askama::Error);

/// Renders a view.
///
/// # Errors
/// If the template fails, which ours don't.
pub fn render(view: &impl askama::Template) -> Result<Vec<u8>, RenderError> {
    Ok(view.render()?.into_bytes())
}

#[cfg(test)]
pub(crate) mod tests;
