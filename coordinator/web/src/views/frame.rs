//! The frame that all documents of a page share: name, colors, links and time of rendering.

use parallax_core::page::Page;
use parallax_core::page::branding::Theme;
use parallax_core::time::Timestamp;
use parallax_i18n::page_messages::{PageLocale, PageMessages, fill};

use super::format::{self, FormattedTime};
use super::link_preview::LinkPreview;

/// Common frame of a page's documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PageFrame {
    /// The page's name.
    pub name: String,
    /// Description in one line.
    pub description: Option<String>,
    /// Checked support URL.
    pub support: Option<String>,
    /// Path prefix of the page.
    pub root: String,
    /// Path of the page.
    pub home: String,
    /// Path prefix of assets.
    pub base: String,
    /// Title of the document.
    pub title: String,
    /// IANA time zone of the times shown.
    pub zone: &'static str,
    /// True in a preview, whose sandbox opens no windows: every link asks for one, so that a click does nothing.
    pub is_preview: bool,
    /// True if search engines must not index it.
    pub noindex: bool,
    /// True if visitors signed in and may sign out.
    pub guarded: bool,
    /// Theme set by the owner.
    pub theme: Option<&'static str>,
    /// Path of the accent color's style sheet.
    pub accent: Option<String>,
    /// Path of the logo.
    pub logo: Option<String>,
    /// Path and media type of the favicon.
    pub icon: Option<(String, &'static str)>,
    /// Link preview and canonical URL; `None` for pages that aren't shared.
    pub share: Option<LinkPreview>,
    /// Time of rendering.
    pub rendered_at: FormattedTime,
    /// Texts in the page's language.
    pub t: &'static PageMessages,
}

impl PageFrame {
    /// Builds the frame of a document.
    pub(crate) fn new(page: &Page, root: &str, title: &str, now: Timestamp) -> Self {
        let locale = PageLocale::of(page);
        Self {
            name: page.name.clone(),
            description: page.description.clone(),
            support: page.support_url.as_deref().and_then(format::checked_link),
            root: root.to_owned(),
            base: root.strip_suffix(&format!("/p/{}", page.slug)).unwrap_or_default().to_owned(),
            home: if root.is_empty() { "/".to_owned() } else { root.to_owned() },
            title: fill(locale.messages.title, &[title, &page.name]),
            zone: page.timezone.name(),
            is_preview: false,
            noindex: page.noindex || page.private || page.password_hash.is_some(),
            guarded: page.private || page.password_hash.is_some(),
            theme: Some(page.branding.theme).filter(|theme| *theme != Theme::Auto).map(Theme::name),
            accent: page.branding.accent.map(|it| format!("{root}/accent/{}", it.to_string().trim_start_matches('#'))),
            logo: page.branding.logo.map(|it| format!("{root}/logo/{}", it.hex())),
            icon: page.branding.favicon.map(|it| (format!("{root}/favicon/{}", it.hex()), it.kind.media())),
            share: None,
            rendered_at: format::format_time(now, locale),
            t: locale.messages,
        }
    }

    /// Adds the link preview.
    pub(super) fn with_preview(self, share: LinkPreview) -> Self {
        Self { share: Some(share), ..self }
    }

    /// Zones of times and days: the visitor's zone for times, which the script fills in, and the page's for
    /// days.
    pub(super) fn time_zone_note(&self) -> String {
        fill(self.t.times_local, &["{0}", self.zone])
    }

    /// Fills one value into a text.
    pub(super) fn fill(&self, pattern: &str, value: impl AsRef<str>) -> String {
        fill(pattern, &[value.as_ref()])
    }
}

/// Returns a document without its rendering time, so that unchanged content compares equal. Removes the last
/// element with that id: user text comes before it and contains no markup.
pub(crate) fn without_timestamp(document: &[u8]) -> Vec<u8> {
    const FROM: &[u8] = b"<time id=\"written\"";
    const TO: &[u8] = b"</time>";
    let find = |part: &[u8], text: &[u8]| text.windows(part.len()).rposition(|it| it == part);
    match (find(FROM, document), find(TO, document)) {
        (Some(from), Some(to)) if from < to => [&document[..from], &document[to..]].concat(),
        _ => document.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_compared_without_its_time_of_rendering() {
        let compared = |text: &str, at: &str| {
            without_timestamp(format!("<p>{text}</p><time id=\"written\" datetime=\"{at}\">{at}</time>.").as_bytes())
        };
        assert_eq!(compared("up", "12:46"), compared("up", "12:47"));
        assert_ne!(compared("up", "12:46"), compared("down", "12:46"));
        let plain = b"<time>12:46</time>";
        assert_eq!(without_timestamp(plain), plain);
    }
}
