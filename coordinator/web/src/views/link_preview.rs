//! Link previews (Open Graph): a title, a text, and an image whose URL changes with its content.

mod font;
mod preview_image;
pub(crate) use preview_image::render_png;

use parallax_core::headline::Indicator;
use parallax_core::page::Page;
use parallax_core::page_view::{HISTORY_DAYS, IncidentView, MonitorView, PageView, TimeRange};
use parallax_i18n::page_messages::{fill, in_english, messages};
use parallax_runtime::markdown;
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
    words: [String; 2],
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
            let look = |view: &MonitorView| {
                let is_present = !is_stale && at + 1 == view.history.days.len();
                view.history.days.get(at).map(|day| day_state(view, day, is_present))
            };
            page_view.monitors.iter().filter_map(look).max_by_key(|look| severity(*look)).unwrap_or(BarState::NoData)
        };
        let headline = Headline::of(page_view);
        let words = [page_view.page.name.clone(), headline.title];
        let made = page_view.monitors.iter().map(|view| view.monitor.created_at).min();
        let (range, _) = TimeRange::default_for(made.unwrap_or(page_view.page.created_at), page_view.now);
        let days = range.days().max(TimeRange::Week.days());
        Self { class: headline.class, words, days: (HISTORY_DAYS - days..HISTORY_DAYS).map(worst).collect() }
    }

    /// Content hash in the image's URL: twelve hexadecimal digits.
    pub(crate) fn key(&self) -> String {
        let mut content = format!("{DESIGN_VERSION}{}:", self.class);
        content.extend(self.days.iter().map(|day| day.class()));
        for words in &self.words {
            content.push('\n');
            content += words;
        }
        hex::encode(&Sha256::digest(content.as_bytes())[..6])
    }
}

const fn severity(look: BarState) -> u8 {
    match look {
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
        let hardly = in_english().known_operational;
        let is_ours = headline.title == hardly || Indicator::ALL.iter().any(|one| one.headline() == headline.title);
        let mut letters = headline.title.chars();
        let title = match letters.next() {
            Some(first) if is_ours => first.to_lowercase().chain(letters).collect(),
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
        notice: &IncidentView,
        card: &IncidentCard,
        found: PreviewLocation<'_>,
    ) -> Self {
        let last = notice.incident.updates.last().zip(card.updates.first());
        let last = last.map(|(update, printed)| format!("{}: {}", printed.status, markdown::plain_line(&update.body)));
        let was = card.past_severity.unwrap_or_default();
        let parts = [card.kind, was, &card.monitors, last.as_deref().unwrap_or_default()];
        let text = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" · ");
        Self::new(page, &card.title, text, &format!("/incidents/{}", notice.incident.id), found)
    }

    /// Builds the preview of a monitor: state and uptime.
    pub(super) fn of_monitor(close: &MonitorDetailView<'_>, found: PreviewLocation<'_>) -> Self {
        let messages = messages(close.page.language);
        let view = close.view;
        let context = RangeContext { range: TimeRange::Quarter, ..RangeContext::of_monitor(close) };
        let state = MonitorStateLabel::of(view, close.is_stale, messages).text;
        let text = format!("{state} · {}", UptimeView::of(view, context).text());
        Self::new(close.page, &view.monitor.name, text, &format!("/monitors/{}", view.monitor.id), found)
    }

    /// Builds the preview of a month: number of incidents.
    pub(super) fn of_month(
        page: &Page,
        (year, month): (i32, u32),
        notices: &[IncidentView],
        found: PreviewLocation<'_>,
    ) -> Self {
        let messages = messages(page.language);
        let name = format::format_month(year, month, messages);
        let text = match notices.iter().filter(|notice| notice.outage_start().is_some()).count() {
            0 => fill(messages.no_incidents_in, &[&name]),
            count => messages.locale().plural(count as u64, messages.one_incident, messages.incidents),
        };
        let title = fill(messages.history_of, &[&name]);
        Self::new(page, &title, text, &format!("/history/{year:04}-{month:02}"), found)
    }

    fn new(page: &Page, title: &str, text: String, path: &str, found: PreviewLocation<'_>) -> Self {
        let PreviewLocation { url: address, image_key: picture } = found;
        Self {
            title: format!("{}: {title}", page.name),
            text: truncate(text),
            url: format!("{address}{path}"),
            image: format!("{address}/og-{picture}.png"),
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

    fn share(page_view: &PageView) -> LinkPreview {
        LinkPreview::of(page_view, &Headline::of(page_view), "https://x.example")
    }

    #[test]
    fn a_day_on_which_something_is_down_is_no_good_one() {
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
    fn a_picture_shows_the_days_that_the_age_fills() {
        let mut page_view = page_view();
        for (age, days) in [(0, 7), (7 * DAY - 1, 7), (8 * DAY, 30), (40 * DAY, 90), (400 * DAY, 90)] {
            for view in &mut page_view.monitors {
                view.monitor.created_at = page_view.now - age;
            }
            let sight = PreviewContent::of(&page_view);
            assert_eq!(sight.days.len(), days, "{age}");
            assert!(render_png(&sight).unwrap().len() < 60_000);
        }
    }

    #[test]
    fn a_link_says_the_state_and_its_picture_moves_with_it() {
        let troubled = page_view();
        assert_eq!(share(&troubled).title, "Northwind: Payments API fails from Asia");
        let mut calm = PageView { incidents: Vec::new(), indicator: Indicator::Operational, ..troubled.clone() };
        assert_eq!(share(&calm).title, "Northwind: everything we have data for is working");
        calm.monitors.retain(|view| view.state.status != MonitorStatus::Unknown);
        let well = share(&calm);
        assert_eq!(well.title, "Northwind: all systems operational");
        assert_ne!(share(&troubled).image, well.image);
        let mut later = calm.clone();
        later.now = later.now + 1000;
        later.monitors[0].state.status = MonitorStatus::Up;
        assert_eq!(share(&later).image, well.image);
        let key = PreviewContent::of(&calm).key();
        assert!(key.len() == 12 && key.bytes().all(|byte| byte.is_ascii_hexdigit()), "{key}");
    }

    #[test]
    fn a_link_to_an_incident_says_what_it_is_and_the_last_word_on_it() {
        let page_view = page_view();
        let notice = &page_view.incidents[0];
        let card = IncidentCard::of(
            notice,
            "",
            parallax_i18n::page_messages::PageLocale::of(&page_view.page),
            page_view.now,
            false,
        );
        let found = PreviewLocation { url: "https://x.example", image_key: "0123456789ab" };
        let share = LinkPreview::of_incident(&page_view.page, notice, &card, found);
        assert_eq!(share.image, "https://x.example/og-0123456789ab.png");
        assert_eq!(
            share.text,
            "Partial outage · Payments API · Identified: A transit provider in Singapore drops our traffic. We are moving to \
             another one."
        );
        assert_eq!(truncate("é".repeat(MAX_TEXT)).chars().count(), MAX_TEXT);
        let long = truncate("é".repeat(MAX_TEXT + 1));
        assert!(long.chars().count() == MAX_TEXT && long.ends_with("é…"), "{long}");
    }

    #[test]
    fn a_picture_of_a_name_that_no_letter_is_there_for_has_no_text() {
        let sight = |name: &str| {
            let page_view = page_view();
            PreviewContent::of(&PageView {
                page: Page { name: name.to_owned(), ..page_view.page.clone() },
                ..page_view
            })
        };
        let [plain, other] = ["Northwind", "Southwind"].map(sight);
        assert_ne!(plain.key(), other.key());
        assert_ne!(render_png(&plain).unwrap(), render_png(&other).unwrap());
        let [one, two] = ["北風", "南風"].map(sight);
        assert_ne!(one.key(), two.key());
        assert_eq!(render_png(&one).unwrap(), render_png(&two).unwrap());
        let long = PreviewContent { words: ["W".repeat(60), "Wolves ".repeat(60)], ..plain };
        assert!(render_png(&long).unwrap().len() < 60_000);
    }

    #[test]
    fn a_picture_of_each_state_is_drawn() {
        let page_view = page_view();
        for class in ["up", "slow", "part", "down", "none", "maint"] {
            let sight = PreviewContent { class, ..PreviewContent::of(&page_view) };
            let drawn = render_png(&sight).unwrap();
            let read = png::Decoder::new(drawn.as_slice()).read_info().unwrap();
            assert_eq!((read.info().width, read.info().height), (1200, 630));
            assert!(drawn.len() < 60_000, "{}", drawn.len());
            if let Some(folder) = std::env::var_os("PARALLAX_SPECIMENS") {
                std::fs::write(std::path::Path::new(&folder).join(format!("og-{class}.png")), &drawn).unwrap();
            }
        }
    }
}
