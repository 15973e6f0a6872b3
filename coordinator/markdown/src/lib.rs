//! User-written Markdown: as HTML under two policies, one for pages and one for mails, and as plain text.
//!
//! Both policies share the parser, its bounds and the sanitizer: an allow-list of tags, links of three schemes, raw
//! HTML shown as text, and no embedded resources. They differ in headings and in the markup around tables and
//! quotations.

mod mail;
mod page;
mod plain_text;

pub use mail::render_mail;
pub use page::{Markup, render_article, render_short};
pub use plain_text::{plain_line, plain_text};

use std::collections::{HashMap, HashSet};

use ammonia::Builder;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd, html};

/// Maximum cells of all tables in a text: short rows are padded, so a few lines could otherwise become megabytes.
const MAX_CELLS: usize = 8000;

/// Tags allowed under both policies.
const SHARED_TAGS: [&str; 18] = [
    "p",
    "br",
    "strong",
    "em",
    "code",
    "pre",
    "ul",
    "ol",
    "li",
    "blockquote",
    "a",
    "del",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
];

/// Creates a sanitizer that allows structure, emphasis, links that open without a referrer, and `additional_tags`.
fn sanitizer(additional_tags: &[&'static str]) -> Builder<'static> {
    let mut builder = Builder::empty();
    builder
        .tags(SHARED_TAGS.into_iter().chain(additional_tags.iter().copied()).collect())
        .clean_content_tags(HashSet::from(["script", "style"]))
        .tag_attributes(HashMap::from([("a", HashSet::from(["href"]))]))
        .url_schemes(HashSet::from(["http", "https", "mailto"]))
        .url_relative(ammonia::UrlRelative::Deny)
        .link_rel(Some("nofollow noopener noreferrer"));
    builder
}

/// Parses Markdown with strikethrough, and with tables if they are of a size that people write.
fn parse(text: &str) -> Parser<'_> {
    // Markdown treats either as a line end.
    let lines = || text.split(['\n', '\r']);
    let widest = lines().map(|line| line.matches('|').count() + 1).max().unwrap_or_default();
    let has_tables = lines().count().saturating_mul(widest) <= MAX_CELLS;
    let tables = if has_tables { Options::ENABLE_TABLES } else { Options::empty() };
    Parser::new_ext(text, Options::ENABLE_STRIKETHROUGH | tables)
}

/// Renders events as HTML and sanitizes it with the policy's sanitizer. Raw HTML is shown as text, and images become
/// links. Each tag of `tags` is then replaced by its markup: after sanitizing, any tag comes from Markdown, since tags
/// in the source are escaped.
fn sanitized_html<'a>(
    events: impl Iterator<Item = Event<'a>>,
    sanitizer: &Builder<'_>,
    tags: &[(&str, &str)],
) -> String {
    let events = events.map(|event| match event {
        Event::Html(html) | Event::InlineHtml(html) => Event::Text(html),
        Event::Start(Tag::HtmlBlock) => Event::Start(Tag::Paragraph),
        Event::End(TagEnd::HtmlBlock) => Event::End(TagEnd::Paragraph),
        Event::Start(Tag::Image { link_type, dest_url, title, id }) => {
            Event::Start(Tag::Link { link_type, dest_url, title, id })
        }
        Event::End(TagEnd::Image) => Event::End(TagEnd::Link),
        Event::SoftBreak => Event::HardBreak,
        other => other,
    });
    let mut markup = String::new();
    html::push_html(&mut markup, events);
    let clean = sanitizer.clean(&markup).to_string();
    tags.iter().fold(clean, |html, (tag, replacement)| html.replace(tag, replacement))
}
