//! Pages as Markdown for programs that read text: the same content as the HTML without charts.

mod escape;

use std::fmt::Write;

use parallax_core::board::{Board, Notice, Range, Shown, worst_first};
use parallax_core::incident::{Incident, Kind};
use parallax_core::time::Timestamp;

use super::feeds::{Site, is_under_way};
use super::headline::Headline;
use super::monitor::{Close, State};
use super::strip::Glance;
use super::tongue::{Voice, in_english};
use super::uptime::Uptime;
use super::words;
pub(in crate::views) use escape::line;
use escape::quote;

/// Media type.
pub const MEDIA: &str = "text/markdown; charset=utf-8";
/// Number of updates per incident in a list; the incident's own page has all of them.
const UPDATES: usize = 3;

/// Renders the status page.
pub fn page(site: Site<'_>, board: &Board) -> String {
    let headline = Headline::of(board);
    let mut text = format!("# {} status\n\n", line(&board.page.name));
    if let Some(description) = &board.page.description {
        text += &format!("{}\n\n", line(description));
    }
    text += &format!("**{}**", line(&headline.title));
    if !headline.text.is_empty() {
        text += &format!(" {}", line(&headline.text));
    }
    text += &match (board.checked(), &headline.regions) {
        (Some(at), Some(regions)) => format!("\n\nChecked from {regions}, last at {at}.\n"),
        (Some(at), None) => format!("\n\nLast data received at {at}.\n"),
        (None, _) => "\n\nNothing has been checked yet.\n".to_owned(),
    };
    for (title, notices) in [
        ("Open incidents", worst_first(&board.incidents)),
        ("Maintenance", board.maintenance.iter().collect()),
    ] {
        text += &section(site, title, &notices, board.now);
    }
    if !board.later.is_empty() {
        text += "\n## Later maintenance\n\n";
    }
    for Notice { incident, .. } in &board.later {
        let (title, link) = (line(&incident.title), site.incident(incident));
        let _ = writeln!(text, "- [{title}]({link}.md): {}", when(incident, board.now));
    }
    text += &section(site, "Past incidents", &board.past.iter().collect::<Vec<_>>(), board.now);
    text += "\n## Services\n\n";
    let glance = in_words(Glance { range: Range::Quarter, ..Glance::of_board(board) });
    for shown in &board.monitors {
        text += &service(site, shown, glance);
    }
    text += "\n## More\n\n";
    text += &links(site);
    text
}

/// Renders the history of a month.
pub fn month(site: Site<'_>, (year, month): (i32, u32), notices: &[Notice], now: Timestamp) -> String {
    let mut text =
        format!("# {}: history of {}\n", line(&site.page.name), words::month(year, month, in_english()));
    if notices.is_empty() {
        text += "\nNo incidents.\n";
    }
    for notice in notices {
        text += &told(site, notice, now, "##", UPDATES);
    }
    text
}

/// Renders an incident or window with all updates.
pub fn incident(site: Site<'_>, notice: &Notice, now: Timestamp) -> String {
    let mut text = told(site, notice, now, "#", usize::MAX).trim_start().to_owned();
    if let Some(postmortem) = &notice.incident.postmortem {
        text += &format!("\n## Post-mortem\n\n{}", quote(postmortem));
    }
    text
}

/// Renders a monitor with its outages.
pub fn monitor(site: Site<'_>, close: &Close<'_>) -> String {
    let shown = close.shown;
    let mut text = format!("# {}\n\n", line(&shown.monitor.name));
    if let Some(group) = &shown.monitor.group {
        text += &format!("- Group: {}\n", line(group));
    }
    text += &format!("- State: {}\n", State::of(shown, close.is_stale, in_english()).words);
    if let Some(since) = shown.view.since {
        text += &format!("- Since: {since}\n");
    }
    if let Some(check) = &shown.view.last_check {
        text += &format!("- Last checked: {}\n", check.at);
    }
    for (_, uptime) in Uptime::of_each(shown, in_words(Glance::of_monitor(close))) {
        if let Some(uptime) = uptime {
            text += &format!("- Uptime {}: {}\n", uptime.time(), uptime.unsaid.unwrap_or(&uptime.figure));
        }
    }
    if let Some(latency) = shown.latency_ms {
        text += &format!("- Response time over 24 hours: {}\n", words::milliseconds(latency, in_english()));
    }
    let over: Vec<&Notice> = close.over().collect();
    for (title, notices) in
        [("Open incidents and maintenance", worst_first(close.open)), ("Past incidents", over)]
    {
        text += &section(site, title, &notices, close.now);
    }
    text += "\n## Outages\n\n";
    if close.outages.is_empty() {
        text += &format!("{}\n", in_english().none_known);
    }
    for outage in close.outages {
        let end = outage.to.map_or_else(|| "now".to_owned(), |at| at.to_string());
        let _ = write!(text, "- {} to {end}", outage.from);
        if let Some(regions) = outage.regions {
            let _ = write!(text, ", from {}", in_english().tongue().regions(regions));
        }
        if let Some(reason) = &outage.reason {
            let _ = write!(text, ": {}", line(&reason.to_string()));
        }
        text.push('\n');
    }
    let _ = write!(text, "\n[{} status]({})\n", line(&site.page.name), site.address);
    text
}

/// Renders `/llms.txt`, the overview for programs.
pub fn guide(site: Site<'_>) -> String {
    let mut text = format!("# {} status\n\n", line(&site.page.name));
    let about = site.page.description.as_deref().unwrap_or("Current status and past incidents.");
    let _ = writeln!(text, "> {}\n", line(about));
    text += "Every page is also available as Markdown: append `.md` to its path, or send `Accept: text/markdown`.\n\n## Documents\n\n";
    text += &links(site);
    text
}

fn links(site: Site<'_>) -> String {
    let mut text = String::new();
    for (path, what) in [
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
        let _ = writeln!(text, "- [{what}]({})", site.at(path));
    }
    text
}

/// Returns the range with English texts.
fn in_words(glance: Glance) -> Glance {
    Glance { voice: Voice { words: in_english(), ..glance.voice }, ..glance }
}

fn service(site: Site<'_>, shown: &Shown, glance: Glance) -> String {
    let link = site.at(&format!("/monitors/{}.md", shown.monitor.id));
    let mut text = format!("- [{}]({link})", line(&shown.monitor.name));
    if let Some(group) = &shown.monitor.group {
        let _ = write!(text, " ({})", line(group));
    }
    let _ = write!(text, ": {}", State::of(shown, glance.is_stale, in_english()).words);
    if shown.uptime_in(glance.range).is_some() {
        let _ = write!(text, ", {}", Uptime::of(shown, glance).text());
    }
    if let Some(latency) = shown.latency_ms {
        let _ = write!(text, ", {}", words::milliseconds(latency, in_english()));
    }
    text.push('\n');
    text
}

/// Renders notices under a heading; empty without notices.
fn section(site: Site<'_>, title: &str, notices: &[&Notice], now: Timestamp) -> String {
    let told = notices.iter().map(|notice| told(site, notice, now, "###", UPDATES));
    if notices.is_empty() { String::new() } else { format!("\n## {title}\n{}", told.collect::<String>()) }
}

/// Renders a notice below a heading, with its newest updates. User-written text is quoted, so that it isn't
/// mistaken for the service's own.
fn told(site: Site<'_>, notice: &Notice, now: Timestamp, level: &str, updates: usize) -> String {
    let incident = &notice.incident;
    let link = site.incident(incident);
    let mut text = format!("\n{level} [{}]({link}.md)\n\n{}\n", line(&incident.title), when(incident, now));
    if !notice.monitors.is_empty() {
        let names: Vec<String> = notice.monitors.iter().map(|(_, name, _)| line(name)).collect();
        let _ = writeln!(text, "\nAffected: {}", in_english().tongue().list(&names));
    }
    for update in incident.updates.iter().rev().take(updates) {
        let _ =
            write!(text, "\n**{}**, {}:\n\n{}", line(&update.status), update.created_at, quote(&update.body));
    }
    text
}

fn when(incident: &Incident, now: Timestamp) -> String {
    let end = incident.resolved_at.map(|at| at.to_string());
    match (incident.kind, incident.ends_at) {
        (Kind::Maintenance, Some(ends_at)) if is_under_way(incident, now) => {
            format!("Maintenance, in progress since {}, ends at {ends_at}", incident.started_at)
        }
        (Kind::Maintenance, Some(ends_at)) => {
            let state = if incident.is_cancelled() { "cancelled" } else { incident.status.name() };
            let (state, end) = (state, end.unwrap_or_else(|| ends_at.to_string()));
            format!("Maintenance, {state}: {} to {end}", incident.planned_start())
        }
        (Kind::Maintenance | Kind::Incident, _) => {
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
    use crate::views::feeds::tests::{NASTY, saying};
    use crate::views::tests::{NOW, board};

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
        for text in NASTY {
            let mut board = saying(text);
            for notice in board.incidents.iter_mut().chain(&mut board.maintenance).chain(&mut board.past) {
                notice.incident.updates.clear();
            }
            let shown = text.replace(['\u{2028}', '\u{2029}'], " ");
            let site = Site { page: &board.page, address: "https://x.example" };
            let (links, raw) = links_of(&page(site, &board));
            assert_eq!(links.iter().filter(|link| **link == shown).count(), 8, "{links:?}");
            assert!(!raw);
            assert!(!links_of(&incident(site, &board.incidents[0], NOW)).1);
        }
    }

    #[test]
    fn a_page_says_what_its_visitors_see() {
        let board = board();
        let site = Site { page: &board.page, address: "https://x.example" };
        let text = page(site, &board);
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
        assert!(incident(site, &board.past[0], NOW).contains("## Post-mortem\n\n> ## What happened"));
        assert!(month(site, (2026, 11), &[], NOW).contains("No incidents."));
        assert!(guide(site).starts_with("# Northwind status\n\n> Shop, payments and the public API\n"));
    }
}
