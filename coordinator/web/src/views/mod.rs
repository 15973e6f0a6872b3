//! Templates and their view models. Each view depends only on core values, so equal input gives equal output.
//!
//! A view is a struct of printable values, which its template escapes. The one exception is the
//! [`Markup`](parallax_markdown::Markup) of users' texts, which is sanitized.

pub(crate) mod accent;
pub(crate) mod access_pages;
pub(crate) mod api_reference;
pub(crate) mod assets;
pub(crate) mod badge;
mod chart;
pub(crate) mod dashboard;
pub(crate) mod embed;
pub(crate) mod embed_snippets;
pub(crate) mod evidence;
pub(crate) mod feeds;
mod format;
pub(crate) mod frame;
pub(crate) mod headline;
pub(crate) mod incident;
mod incident_card;
pub(crate) mod link_preview;
pub(crate) mod markdown_page;
pub(crate) mod monitor;
pub(crate) mod monitor_detail;
mod monitor_groups;
mod monitor_state;
pub(crate) mod page;
mod range_context;
mod ranges;
pub(crate) mod start_page;
pub(crate) mod subscription_forms;
mod uptime;
mod uptime_bars;

/// A view could not be rendered.
#[derive(Debug, thiserror::Error)]
#[error("can't render a page: {0}")]
pub(crate) struct RenderError(#[from] askama::Error);

/// Renders a view.
///
/// # Errors
/// If the template fails, which the compiled templates don't.
pub(crate) fn render(view: &impl askama::Template) -> Result<Vec<u8>, RenderError> {
    Ok(view.render()?.into_bytes())
}

#[cfg(test)]
pub(crate) mod tests;
