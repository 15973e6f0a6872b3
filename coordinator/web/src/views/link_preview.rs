//! Link previews (Open Graph): a title, a text, and an image whose URL changes with its content.

mod font;
mod preview_image;
use parallax_core::headline::Indicator;
use parallax_core::page::Page;
use parallax_core::page_view::{HISTORY_DAYS, IncidentView, MonitorView, PageView, TimeRange};
use parallax_i18n::page_messages::{fill, in_english, messages};
pub(crate) use preview_image::render_png;
use sha2::{Digest, Sha256};

use super::format;
use super::headline::Headline;
use super::incident_card::IncidentCard;
use super::monitor_detail::MonitorDetailView;
use super::monitor_state::MonitorStateLabel;
use super::range_context::RangeContext;
use super::uptime::UptimeView;
use super::uptime_bars::{BarState, day_state};

/// Version of the image's design; it is part of the image's URL.
const DESIGN_VERSION: u8 = 2;
/// Maximum length of a text in characters.
const MAX_TEXT: usize = 200;

/// Content of a preview image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PreviewContent {
    /// CSS class of the overall status.
    class: &'static str,
    /// Name of the page and headline.
    texts: [String; 2],
    /// Worst state of each day, oldest first: a week, or as many days as the range that the age of the
    /// monitors fills.
    days: Vec<BarState>,
}

/// Link preview of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LinkPreview {
    /// Name and status.
    pub title: String,
    /// Additional text.
    pub text: String,
    /// URL of the page.
    pub url: String,
    /// URL of the image.
    pub image: String,
}

impl PreviewContent {
    /// Extracts the image's content from a page view.
    pub(crate) fn of(page_view: &PageView) -> Self {
        let is_stale = page_view.is_stale();
        let worst = |at: usize| {
            let state_of = |view: &MonitorView| {
                let is_present = !is_stale && at + 1 == view.history.days.len();
                view.history.days.get(at).map(|day| day_state(view, day, is_present))
            };
            page_view
                .monitors
                .iter()
                .filter_map(state_of)
                .max_by_key(|state| severity(*state))
                .unwrap_or(BarState::NoData)
        };
        let headline = Headline::of(page_view);
        let texts = [page_view.page.name.clone(), headline.title];
        let created_at = page_view.monitors.iter().map(|view| view.monitor.created_at).min();
        let (range, _) = TimeRange::default_for(created_at.unwrap_or(page_view.page.created_at), page_view.now);
        let days = range.days().max(TimeRange::Week.days());
        Self { class: headline.class, texts, days: (HISTORY_DAYS - days..HISTORY_DAYS).map(worst).collect() }
    }

    /// Content hash in the image's URL: twelve hexadecimal digits.
    pub(crate) fn key(&self) -> String {
        let mut content = format!("{DESIGN_VERSION}{}:", self.class);
        content.extend(self.days.iter().map(|day| day.class()));
        for text in &self.texts {
            content.push('\n');
            content += text;
        }
        hex::encode(&Sha256::digest(content.as_bytes())[..6])
    }
}

const fn severity(state: BarState) -> u8 {
    match state {
        BarState::NoData => 0,
        BarState::Maintenance => 1,
        BarState::Up => 2,
        BarState::Slow => 3,
        BarState::BriefOutage => 4,
        BarState::LongOutage => 5,
    }
}

/// Canonical URL of a page and key of its preview image.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PreviewLocation<'a> {
    /// URL, without a trailing slash.
    pub url: &'a str,
    /// Key of its [`PreviewContent`].
    pub image_key: &'a str,
}

impl LinkPreview {
    /// Builds the preview of the status page.
    pub(crate) fn of(page_view: &PageView, headline: &Headline, address: &str) -> Self {
        let messages = messages(page_view.page.language);
        // A built-in sentence is lowercased after the name; a user-written title is left as it is.
        let mostly_known = in_english().known_operational;
        let is_built_in = headline.title == mostly_known
            || Indicator::ALL.iter().any(|indicator| indicator.headline() == headline.title);
        let mut characters = headline.title.chars();
        let title = match characters.next() {
            Some(first) if is_built_in => first.to_lowercase().chain(characters).collect(),
            Some(_) | None => headline.title.clone(),
        };
        let text = match (&headline.text, &page_view.page.description) {
            (text, _) if !text.is_empty() => text.clone(),
            (_, Some(description)) => description.clone(),
            (_, None) => fill(messages.title, &[&headline.title, &page_view.page.name]),
        };
        Self::new(
            &page_view.page,
            &title,
            text,
            "",
            PreviewLocation { url: address, image_key: &PreviewContent::of(page_view).key() },
        )
    }

    /// Builds the preview of an incident or window: kind, affected monitors, and newest update.
    pub(super) fn of_incident(
        page: &Page,
        incident_view: &IncidentView,
        card: &IncidentCard,
        location: PreviewLocation<'_>,
    ) -> Self {
        let last = incident_view.incident.updates.last().zip(card.updates.first());
        let last = last.map(|(update, card_update)| {
            format!("{}: {}", card_update.status, parallax_markdown::plain_line(&update.body))
        });
        let past_severity = card.past_severity.unwrap_or_default();
        let parts = [card.kind, past_severity, &card.monitors, last.as_deref().unwrap_or_default()];
        let text = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" · ");
        Self::new(page, &card.title, text, &format!("/incidents/{}", incident_view.incident.id), location)
    }

    /// Builds the preview of a monitor: state and uptime.
    pub(super) fn of_monitor(detail: &MonitorDetailView<'_>, location: PreviewLocation<'_>) -> Self {
        let messages = messages(detail.page.language);
        let view = detail.view;
        let context = RangeContext { range: TimeRange::Quarter, ..RangeContext::of_monitor(detail) };
        let state = MonitorStateLabel::of(view, detail.is_stale, messages).text;
        let text = format!("{state} · {}", UptimeView::of(view, context).text());
        Self::new(detail.page, &view.monitor.name, text, &format!("/monitors/{}", view.monitor.id), location)
    }

    /// Builds the preview of a month: number of incidents.
    pub(super) fn of_month(
        page: &Page,
        (year, month): (i32, u32),
        incident_views: &[IncidentView],
        location: PreviewLocation<'_>,
    ) -> Self {
        let messages = messages(page.language);
        let name = format::format_month(year, month, messages);
        let text = match incident_views.iter().filter(|incident_view| incident_view.outage_start().is_some()).count() {
            0 => fill(messages.no_incidents_in, &[&name]),
            count => messages.locale().plural(count as u64, messages.one_incident, messages.incidents),
        };
        let title = fill(messages.history_of, &[&name]);
        Self::new(page, &title, text, &format!("/history/{year:04}-{month:02}"), location)
    }

    fn new(page: &Page, title: &str, text: String, path: &str, location: PreviewLocation<'_>) -> Self {
        let PreviewLocation { url: address, image_key } = location;
        Self {
            title: format!("{}: {title}", page.name),
            text: truncate(text),
            url: format!("{address}{path}"),
            image: format!("{address}/og-{image_key}.png"),
        }
    }
}

/// Truncates a text to the length that previews show.
fn truncate(text: String) -> String {
    if text.chars().count() <= MAX_TEXT {
        return text;
    }
    text.chars().take(MAX_TEXT - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use parallax_core::event::MonitorStatus;
    use parallax_core::time::DAY;

    use super::*;
    use crate::views::tests::page_view;

    fn preview(page_view: &PageView) -> LinkPreview {
        LinkPreview::of(page_view, &Headline::of(page_view), "https://x.example")
    }

    #[test]
    fn a_day_with_an_ongoing_outage_is_not_shown_as_up() {
        let mut page_view = page_view();
        let today = |page_view: &PageView| *PreviewContent::of(page_view).days.last().unwrap();
        page_view.monitors.iter_mut().for_each(|view| view.history.days = good_days());
        assert_eq!(today(&page_view), BarState::BriefOutage);
        page_view.monitors[2].state.status = MonitorStatus::Up;
        assert_eq!(today(&page_view), BarState::Up);
    }

    /// Days with only passed rounds.
    fn good_days() -> Vec<parallax_core::page_view::UptimeDay> {
        let mut days = crate::views::tests::monitor_view(1, "Web shop", "Shop", MonitorStatus::Up, 0).history.days;
        for day in &mut days {
            (day.counts.passed, day.uptime) = (60, Some(100.0));
        }
        days
    }

    #[test]
    fn the_preview_image_shows_as_many_days_as_the_monitors_age_fills() {
        let mut page_view = page_view();
        for (age, days) in [(0, 7), (7 * DAY - 1, 7), (8 * DAY, 30), (40 * DAY, 90), (400 * DAY, 90)] {
            for view in &mut page_view.monitors {
                view.monitor.created_at = page_view.now - age;
            }
            let content = PreviewContent::of(&page_view);
            assert_eq!(content.days.len(), days, "{age}");
            assert!(render_png(&content).unwrap().len() < 60_000);
        }
    }

    #[test]
    fn a_link_preview_has_the_status_and_an_image_url_that_changes_with_it() {
        let with_incident = page_view();
        assert_eq!(preview(&with_incident).title, "Northwind: Payments API fails from Asia");
        let mut without_incident =
            PageView { incidents: Vec::new(), indicator: Indicator::Operational, ..with_incident.clone() };
        assert_eq!(preview(&without_incident).title, "Northwind: everything we have data for is working");
        without_incident.monitors.retain(|view| view.state.status != MonitorStatus::Unknown);
        let healthy_preview = preview(&without_incident);
        assert_eq!(healthy_preview.title, "Northwind: all systems operational");
        assert_ne!(preview(&with_incident).image, healthy_preview.image);
        let mut later = without_incident.clone();
        later.now = later.now + 1000;
        later.monitors[0].state.status = MonitorStatus::Up;
        assert_eq!(preview(&later).image, healthy_preview.image);
        let key = PreviewContent::of(&without_incident).key();
        assert!(key.len() == 12 && key.bytes().all(|byte| byte.is_ascii_hexdigit()), "{key}");
    }

    #[test]
    fn the_preview_of_an_incident_has_its_kind_and_newest_update() {
        let page_view = page_view();
        let incident_view = &page_view.incidents[0];
        let card = IncidentCard::of(
            incident_view,
            "",
            parallax_i18n::page_messages::PageLocale::of(&page_view.page),
            page_view.now,
            false,
        );
        let location = PreviewLocation { url: "https://x.example", image_key: "0123456789ab" };
        let preview = LinkPreview::of_incident(&page_view.page, incident_view, &card, location);
        assert_eq!(preview.image, "https://x.example/og-0123456789ab.png");
        assert_eq!(
            preview.text,
            "Partial outage · Payments API · Identified: A transit provider in Singapore drops our traffic. We are moving to \
             another one."
        );
        assert_eq!(truncate("é".repeat(MAX_TEXT)).chars().count(), MAX_TEXT);
        let long = truncate("é".repeat(MAX_TEXT + 1));
        assert!(long.chars().count() == MAX_TEXT && long.ends_with("é…"), "{long}");
    }

    #[test]
    fn the_image_has_no_text_if_the_font_lacks_a_letter() {
        let content = |name: &str| {
            let page_view = page_view();
            PreviewContent::of(&PageView {
                page: Page { name: name.to_owned(), ..page_view.page.clone() },
                ..page_view
            })
        };
        let [plain, other] = ["Northwind", "Southwind"].map(content);
        assert_ne!(plain.key(), other.key());
        assert_ne!(render_png(&plain).unwrap(), render_png(&other).unwrap());
        let [one, two] = ["北風", "南風"].map(content);
        assert_ne!(one.key(), two.key());
        assert_eq!(render_png(&one).unwrap(), render_png(&two).unwrap());
        let long = PreviewContent { texts: ["W".repeat(60), "Wolves ".repeat(60)], ..plain };
        assert!(render_png(&long).unwrap().len() < 60_000);
    }

    #[test]
    fn the_image_of_each_status_is_rendered() {
        let page_view = page_view();
        for class in ["up", "slow", "part", "down", "none", "maint"] {
            let content = PreviewContent { class, ..PreviewContent::of(&page_view) };
            let png = render_png(&content).unwrap();
            let reader = png::Decoder::new(png.as_slice()).read_info().unwrap();
            assert_eq!((reader.info().width, reader.info().height), (1200, 630));
            assert!(png.len() < 60_000, "{}", png.len());
            if let Some(folder) = std::env::var_os("PARALLAX_SPECIMENS") {
                std::fs::write(std::path::Path::new(&folder).join(format!("og-{class}.png")), &png).unwrap();
            }
        }
    }
}
