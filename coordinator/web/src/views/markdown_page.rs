//! Pages as Markdown for programs that read text: the same content as the HTML without charts.

mod escape;
pub(in crate::views) use escape::escape_line;

use std::fmt::Write;

use parallax_core::incident::{Incident, IncidentKind};
use parallax_core::page_view::{IncidentView, MonitorView, PageView, TimeRange, worst_first};
use parallax_core::time::Timestamp;
use parallax_i18n::page_messages::{PageLocale, in_english};

use super::feeds::{FeedSite, is_in_progress};
use super::format;
use super::headline::Headline;
use super::monitor_detail::MonitorDetailView;
use super::monitor_state::MonitorStateLabel;
use super::range_context::RangeContext;
use super::uptime::UptimeView;
use escape::block_quote;

/// Media type.
pub(crate) const MEDIA: &str = "text/markdown; charset=utf-8";
/// Number of updates per incident in a list; the incident's own page has all of them.
const MAX_UPDATES: usize = 3;

/// Renders the status page.
pub(crate) fn status_page(site: FeedSite<'_>, page_view: &PageView) -> String {
    let headline = Headline::of(page_view);
    let mut text = format!("# {} status\n\n", escape_line(&page_view.page.name));
    if let Some(description) = &page_view.page.description {
        text += &format!("{}\n\n", escape_line(description));
    }
    text += &format!("**{}**", escape_line(&headline.title));
    if !headline.text.is_empty() {
        text += &format!(" {}", escape_line(&headline.text));
    }
    text += &match (page_view.last_checked_at(), &headline.regions) {
        (Some(at), Some(regions)) => format!("\n\nChecked from {regions}, last at {at}.\n"),
        (Some(at), None) => format!("\n\nLast data received at {at}.\n"),
        (None, _) => "\n\nNothing has been checked yet.\n".to_owned(),
    };
    for (title, incident_views) in
        [("Open incidents", worst_first(&page_view.incidents)), ("Maintenance", page_view.maintenance.iter().collect())]
    {
        text += &incident_section(site, title, &incident_views, page_view.now);
    }
    if !page_view.later_maintenance.is_empty() {
        text += "\n## Later maintenance\n\n";
    }
    for IncidentView { incident, .. } in &page_view.later_maintenance {
        let (title, link) = (escape_line(&incident.title), site.incident_url(incident));
        let _ = writeln!(text, "- [{title}]({link}.md): {}", time_text(incident, page_view.now));
    }
    text +=
        &incident_section(site, "Past incidents", &page_view.past_incidents.iter().collect::<Vec<_>>(), page_view.now);
    text += "\n## Services\n\n";
    let context = english_context(RangeContext { range: TimeRange::Quarter, ..RangeContext::of_page(page_view) });
    for view in &page_view.monitors {
        text += &service_line(site, view, context);
    }
    text += "\n## More\n\n";
    text += &links(site);
    text
}

/// Renders the history of a month.
pub(crate) fn history_page(
    site: FeedSite<'_>,
    (year, month): (i32, u32),
    incident_views: &[IncidentView],
    now: Timestamp,
) -> String {
    let mut text =
        format!("# {}: history of {}\n", escape_line(&site.page.name), format::format_month(year, month, in_english()));
    if incident_views.is_empty() {
        text += "\nNo incidents.\n";
    }
    for incident_view in incident_views {
        text += &incident_entry(site, incident_view, now, "##", MAX_UPDATES);
    }
    text
}

/// Renders an incident or window with all updates.
pub(crate) fn incident_page(site: FeedSite<'_>, incident_view: &IncidentView, now: Timestamp) -> String {
    let mut text = incident_entry(site, incident_view, now, "#", usize::MAX).trim_start().to_owned();
    if let Some(postmortem) = &incident_view.incident.postmortem {
        text += &format!("\n## Post-mortem\n\n{}", block_quote(postmortem));
    }
    text
}

/// Renders a monitor with its outages.
pub(crate) fn monitor_page(site: FeedSite<'_>, detail: &MonitorDetailView<'_>) -> String {
    let view = detail.view;
    let mut text = format!("# {}\n\n", escape_line(&view.monitor.name));
    if let Some(group) = &view.monitor.group {
        text += &format!("- Group: {}\n", escape_line(group));
    }
    text += &format!("- State: {}\n", MonitorStateLabel::of(view, detail.is_stale, in_english()).text);
    if let Some(since) = view.state.since {
        text += &format!("- Since: {since}\n");
    }
    if let Some(check) = &view.state.last_check {
        text += &format!("- Last checked: {}\n", check.at);
    }
    for (_, uptime) in UptimeView::of_each(view, english_context(RangeContext::of_monitor(detail))) {
        if let Some(uptime) = uptime {
            text += &format!("- Uptime {}: {}\n", uptime.time_range(), uptime.dash_meaning.unwrap_or(&uptime.figure));
        }
    }
    if let Some(latency) = view.latency_ms {
        text += &format!("- Response time over 24 hours: {}\n", format::format_milliseconds(latency, in_english()));
    }
    let past: Vec<&IncidentView> = detail.closed_incidents().collect();
    for (title, incident_views) in
        [("Open incidents and maintenance", worst_first(detail.open)), ("Past incidents", past)]
    {
        text += &incident_section(site, title, &incident_views, detail.now);
    }
    text += "\n## Outages\n\n";
    if detail.outages.is_empty() {
        text += &format!("{}\n", in_english().no_outages);
    }
    for outage in detail.outages {
        let end = outage.to.map_or_else(|| "now".to_owned(), |at| at.to_string());
        let _ = write!(text, "- {} to {end}", outage.from);
        if let Some(regions) = outage.regions {
            let _ = write!(text, ", from {}", in_english().locale().regions(regions));
        }
        if let Some(reason) = &outage.reason {
            let _ = write!(text, ": {}", escape_line(&reason.to_string()));
        }
        text.push('\n');
    }
    let _ = write!(text, "\n[{} status]({})\n", escape_line(&site.page.name), site.url);
    text
}

/// Renders `/llms.txt`, the overview for programs.
pub(crate) fn llms_txt(site: FeedSite<'_>) -> String {
    let mut text = format!("# {} status\n\n", escape_line(&site.page.name));
    let about = site.page.description.as_deref().unwrap_or("Current status and past incidents.");
    let _ = writeln!(text, "> {}\n", escape_line(about));
    text += "Every page is also available as Markdown: append `.md` to its path, or send `Accept: text/markdown`.\n\n## Documents\n\n";
    text += &links(site);
    text
}

fn links(site: FeedSite<'_>) -> String {
    let mut text = String::new();
    for (path, description) in [
        ("/index.md", "The page as Markdown"),
        ("/history.md", "Incidents and maintenance of this month"),
        ("/status.json", "Current status as JSON"),
        ("/api/v2/summary.json", "Current status in the format of Statuspage"),
        ("/feed.atom", "Incidents and maintenance as a feed"),
        ("/maintenance.ics", "Maintenance as a calendar"),
        ("/badges", "Badges, iframe and notice for other sites, with HTML snippets"),
        ("/badge.json", "Status badge for Shields"),
        ("/mcp", "MCP server (POST)"),
    ] {
        let _ = writeln!(text, "- [{description}]({})", site.path_url(path));
    }
    text
}

/// Returns the range with English texts.
fn english_context(context: RangeContext) -> RangeContext {
    RangeContext { locale: PageLocale { messages: in_english(), ..context.locale }, ..context }
}

fn service_line(site: FeedSite<'_>, view: &MonitorView, context: RangeContext) -> String {
    let link = site.path_url(&format!("/monitors/{}.md", view.monitor.id));
    let mut text = format!("- [{}]({link})", escape_line(&view.monitor.name));
    if let Some(group) = &view.monitor.group {
        let _ = write!(text, " ({})", escape_line(group));
    }
    let _ = write!(text, ": {}", MonitorStateLabel::of(view, context.is_stale, in_english()).text);
    if view.uptime_in(context.range).is_some() {
        let _ = write!(text, ", {}", UptimeView::of(view, context).text());
    }
    if let Some(latency) = view.latency_ms {
        let _ = write!(text, ", {}", format::format_milliseconds(latency, in_english()));
    }
    text.push('\n');
    text
}

/// Renders notices under a heading; empty without notices.
fn incident_section(site: FeedSite<'_>, title: &str, incident_views: &[&IncidentView], now: Timestamp) -> String {
    let entries =
        incident_views.iter().map(|incident_view| incident_entry(site, incident_view, now, "###", MAX_UPDATES));
    if incident_views.is_empty() { String::new() } else { format!("\n## {title}\n{}", entries.collect::<String>()) }
}

/// Renders a notice below a heading, with its newest updates. User-written text is quoted, so that it isn't
/// mistaken for the service's own.
fn incident_entry(
    site: FeedSite<'_>,
    incident_view: &IncidentView,
    now: Timestamp,
    level: &str,
    updates: usize,
) -> String {
    let incident = &incident_view.incident;
    let link = site.incident_url(incident);
    let mut text = format!("\n{level} [{}]({link}.md)\n\n{}\n", escape_line(&incident.title), time_text(incident, now));
    if !incident_view.monitors.is_empty() {
        let names: Vec<String> = incident_view.monitors.iter().map(|(_, name, _)| escape_line(name)).collect();
        let _ = writeln!(text, "\nAffected: {}", in_english().locale().list(&names));
    }
    for update in incident.updates.iter().rev().take(updates) {
        let _ = write!(
            text,
            "\n**{}**, {}:\n\n{}",
            escape_line(&update.status),
            update.created_at,
            block_quote(&update.body)
        );
    }
    text
}

fn time_text(incident: &Incident, now: Timestamp) -> String {
    let end = incident.resolved_at.map(|at| at.to_string());
    match (incident.kind, incident.ends_at) {
        (IncidentKind::Maintenance, Some(ends_at)) if is_in_progress(incident, now) => {
            format!("Maintenance, in progress since {}, ends at {ends_at}", incident.started_at)
        }
        (IncidentKind::Maintenance, Some(ends_at)) => {
            let state = if incident.is_cancelled() { "cancelled" } else { incident.status.name() };
            let (state, end) = (state, end.unwrap_or_else(|| ends_at.to_string()));
            format!("Maintenance, {state}: {} to {end}", incident.planned_start())
        }
        (IncidentKind::Maintenance | IncidentKind::Incident, _) => {
            let end = end.map(|end| format!(" to {end}")).unwrap_or_default();
            let (status, impact) = (incident.status.name(), incident.impact.name());
            format!("Incident, {status}, impact {impact}: {}{end}", incident.started_at)
        }
    }
}

#[cfg(test)]
mod tests {
    use pulldown_cmark::{Event, Parser, Tag};

    use super::*;
    use crate::views::feeds::tests::{HOSTILE_TEXTS, page_with_text};
    use crate::views::tests::{NOW, page_view};

    /// Link texts as parsed by a Markdown reader, and true if it found raw HTML.
    fn links_of(text: &str) -> (Vec<String>, bool) {
        let (mut found, mut open, mut raw) = (Vec::new(), None::<String>, false);
        for event in Parser::new(text) {
            match event {
                Event::Start(Tag::Link { .. }) => open = Some(String::new()),
                Event::End(pulldown_cmark::TagEnd::Link) => found.extend(open.take()),
                Event::Text(text) | Event::Code(text) => {
                    if let Some(open) = &mut open {
                        open.push_str(&text);
                    }
                }
                Event::Html(_) | Event::InlineHtml(_) => raw = true,
                _ => {}
            }
        }
        (found, raw)
    }

    #[test]
    fn names_and_titles_are_read_back_from_markdown() {
        for text in HOSTILE_TEXTS {
            let mut page_view = page_with_text(text);
            for incident_view in
                page_view.incidents.iter_mut().chain(&mut page_view.maintenance).chain(&mut page_view.past_incidents)
            {
                incident_view.incident.updates.clear();
            }
            let replaced = text.replace(['\u{2028}', '\u{2029}'], " ");
            let site = FeedSite { page: &page_view.page, url: "https://x.example" };
            let (links, raw) = links_of(&status_page(site, &page_view));
            assert_eq!(links.iter().filter(|link| **link == replaced).count(), 8, "{links:?}");
            assert!(!raw);
            assert!(!links_of(&incident_page(site, &page_view.incidents[0], NOW)).1);
        }
    }

    #[test]
    fn the_markdown_page_has_the_content_of_the_html_page() {
        let page_view = page_view();
        let site = FeedSite { page: &page_view.page, url: "https://x.example" };
        let text = status_page(site, &page_view);
        for part in [
            "# Northwind status\n",
            "**Payments API fails from Asia**",
            "## Open incidents",
            "Incident, identified, impact partial: 2026-11-27T12:32:00.000Z",
            "> A transit provider in *Singapore* drops our traffic.",
            "Maintenance, scheduled: 2026-11-30T12:46:00.000Z to 2026-11-30T14:16:00.000Z",
            "(Payments): Down from Asia",
            "(https://x.example/status.json)",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(
            incident_page(site, &page_view.past_incidents[0], NOW).contains("## Post-mortem\n\n> ## What happened")
        );
        assert!(history_page(site, (2026, 11), &[], NOW).contains("No incidents."));
        assert!(llms_txt(site).starts_with("# Northwind status\n\n> Shop, payments and the public API\n"));
    }
}
