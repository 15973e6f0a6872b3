//! Overview: whether anything is wrong and what to do, for one page or all pages of an account.

use parallax_core::confirmation::ConfirmingNetworks;
use parallax_core::effective::ConfirmationPolicy;
use parallax_core::event::{EditKind, Event, EventKind, MonitorStatus};
use parallax_core::id::{MonitorId, PageId};
use parallax_core::observation::RoundOutcome;
use parallax_core::time::Timestamp;
use parallax_template::template_file;

use super::attention::AttentionRow;
use super::frame::Frame;
use super::state_label::from;
use super::words;
use crate::views::assets;
use crate::views::format::{self, FormattedTime};

/// Maximum rows of what needs attention; the list of monitors has all.
const MAX_ROWS: usize = 25;
/// Number of monitors from which tiles of healthy ones fold to a number.
const FOLD_TILES_FROM: usize = 200;

/// Headline of the worst page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HeadlineText {
    /// CSS class and icon.
    pub class: &'static str,
    /// Title.
    pub title: String,
    /// Sentence under it.
    pub text: String,
    /// Actions, the main one first: address and text.
    pub actions: Vec<(String, &'static str)>,
}

/// A monitor as a tile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tile {
    /// CSS class.
    pub class: &'static str,
    /// Icon; none for a monitor that is up.
    pub icon: &'static str,
    /// Address.
    pub href: String,
    /// Name and state.
    pub label: String,
}

/// A page with its monitors as tiles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PageRow {
    /// Id.
    pub id: PageId,
    /// Name.
    pub name: String,
    /// Address, access and subscribers in words.
    pub facts: String,
    /// Tiles, in page order.
    pub tiles: Vec<Tile>,
}

impl PageRow {
    /// Tiles that are shown: of a page with many monitors, those that are not up.
    fn shown(&self) -> Vec<&Tile> {
        let is_long = self.tiles.len() >= FOLD_TILES_FROM;
        self.tiles.iter().filter(|tile| !is_long || tile.class != "up").collect()
    }

    /// Number of tiles that are not shown.
    fn folded(&self) -> usize {
        self.tiles.len() - self.shown().len()
    }
}

/// Mesh in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MeshText {
    /// First sentence.
    pub title: String,
    /// Consequence; may be empty.
    pub text: String,
}

impl MeshText {
    /// Describes the regions with working agents, each with the number of networks that can confirm there.
    pub(crate) fn of(regions: &[(&str, usize)], confirming: &ConfirmingNetworks) -> Self {
        let text = |title: &str, text: &str| Self { title: title.to_owned(), text: text.to_owned() };
        if regions.is_empty() {
            return text("No working agent is connected.", "Nothing is checked until one connects.");
        }
        if !confirming.has_second() {
            return match confirming.policy {
                ConfirmationPolicy::Repeat => text(
                    "Only one network has working agents.",
                    "A failed check is repeated from the same network until a second one connects.",
                ),
                ConfirmationPolicy::OtherNetwork => text(
                    "Outages can't be confirmed.",
                    "Only one network works. No monitor is called down until an agent on another network connects.",
                ),
            };
        }
        let short: Vec<&(&str, usize)> = regions.iter().filter(|(_, networks)| *networks < 2).collect();
        let all = words::count(regions.len(), "region", "regions");
        let title = format!("{} of {all} can confirm outages.", regions.len() - short.len());
        let text = match short.as_slice() {
            [] => String::new(),
            [(one, networks)] => format!(
                "{one} has {}. Outages that only {one} sees can't be confirmed until another agent connects there.",
                if *networks == 0 { "no network that can confirm" } else { "one network" },
            ),
            more => format!(
                "{} have at most one network each that can confirm. Outages that only one of them sees can't be \
                 confirmed until more agents connect there.",
                more.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
            ),
        };
        Self { title, text }
    }
}

/// Alerts of 24 hours.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct AlertFigures {
    /// Number delivered.
    pub delivered: usize,
    /// Median time to delivery; empty if none was delivered.
    pub median: String,
    /// Number not delivered.
    pub undelivered: usize,
    /// Number of destinations.
    pub destinations: usize,
    /// Number of failing destinations.
    pub failing: usize,
}

impl AlertFigures {
    /// Returns the figures; durations are in milliseconds, in any order.
    pub(crate) fn of(
        delivered: usize,
        undelivered: usize,
        mut durations: Vec<i64>,
        destinations: (usize, usize),
    ) -> Self {
        durations.sort_unstable();
        let median = durations.get(durations.len() / 2);
        let in_words = |millis: &i64| words::elapsed(u64::try_from(*millis).unwrap_or_default());
        Self {
            delivered,
            undelivered,
            median: median.map(in_words).unwrap_or_default(),
            destinations: destinations.0,
            failing: destinations.1,
        }
    }
}

impl AlertFigures {
    /// Number of failing destinations in words.
    fn failing_text(&self) -> String {
        words::count(self.failing, "destination", "destinations")
    }
}

/// Next maintenance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NextMaintenance {
    /// Address.
    pub href: String,
    /// Title.
    pub title: String,
    /// When, for what.
    pub text: String,
}

/// A recent change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChangeRow {
    /// CSS class.
    pub class: &'static str,
    /// Time.
    pub at: FormattedTime,
    /// Address.
    pub href: String,
    /// The change, in bold.
    pub title: String,
    /// Why, or what followed.
    pub text: String,
}

impl ChangeRow {
    /// Describes an event of a monitor; `None` for events that the list does not show.
    pub(crate) fn of(event: &Event, page: PageId, monitor: MonitorId, name: &str, now: Timestamp) -> Option<Self> {
        let (class, title, text) = match &event.kind {
            EventKind::StatusChanged(change) => {
                let place = change.down_from.map(from).unwrap_or_default();
                let reason = change.reason.as_ref().map(|reason| format::capitalize(&reason.to_string()));
                let lasted =
                    change.duration_ms.map(|millis| words::duration(i64::try_from(millis).unwrap_or(i64::MAX)));
                match (change.to, change.from) {
                    (MonitorStatus::Down, _) => {
                        ("down", format!("{name} went down"), sentences(&[Some(place), reason]))
                    }
                    (MonitorStatus::Slow, _) => {
                        let latency = change.latency_ms.map(|millis| format!("{millis} ms"));
                        ("slow", format!("{name} became slow"), sentences(&[latency]))
                    }
                    (MonitorStatus::Up, MonitorStatus::Down) => {
                        let after = lasted.map(|lasted| format!("After {lasted}"));
                        ("up", format!("{name} recovered"), sentences(&[after, reason]))
                    }
                    (MonitorStatus::Up, MonitorStatus::Slow) => ("up", format!("{name} is fast again"), String::new()),
                    (MonitorStatus::Up, _) => ("up", format!("{name} is up"), String::new()),
                    (MonitorStatus::Unknown, _) => ("none", format!("{name} has no fresh result"), String::new()),
                }
            }
            EventKind::Round(report) => {
                let region = from([report.region].into_iter().collect());
                let why = match report.round_outcome {
                    RoundOutcome::Disputed => "disputed by a second network.",
                    _ => "no second network could confirm it.",
                };
                ("maint", format!("Nothing sent for {name}"), format!("One failed check {region}, {why}"))
            }
            EventKind::MonitorEdited(EditKind::Created) => ("none", format!("{name} was created"), String::new()),
            EventKind::MonitorEdited(EditKind::Changed) => ("none", format!("{name} was changed"), String::new()),
            EventKind::FlappingEnded(end) => {
                let state = if end.is_bad { "stays down" } else { "stays up" };
                ("none", format!("{name} no longer flaps"), format!("It {state}."))
            }
            _ => return None,
        };
        let href = format!("/app/pages/{page}/monitors/{monitor}");
        Some(Self { class, at: words::time(event.at, now), href, title, text })
    }
}

fn sentences(parts: &[Option<String>]) -> String {
    let parts = parts.iter().flatten().filter(|part| !part.is_empty());
    parts.map(|part| format!("{}.", format::capitalize(part.trim_end_matches('.')))).collect::<Vec<_>>().join(" ")
}

/// Content of the overview, beside its frame.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct OverviewParts {
    /// Headline; none without monitors.
    pub headline: Option<HeadlineText>,
    /// Rows of what needs attention, the most urgent first.
    pub attention: Vec<AttentionRow>,
    /// Number of monitors, and of those with trouble.
    pub monitors: (usize, usize),
    /// Number of regions with an agent.
    pub regions: usize,
    /// Mesh in words.
    pub mesh: Option<MeshText>,
    /// Alerts of 24 hours.
    pub alerts: AlertFigures,
    /// Next maintenance.
    pub maintenance: Option<NextMaintenance>,
    /// Pages.
    pub pages: Vec<PageRow>,
    /// Recent changes, newest first.
    pub changes: Vec<ChangeRow>,
    /// Steps after the set-up; none once they are done or dismissed.
    pub next_steps: Vec<NextStepRow>,
}

impl OverviewParts {
    /// Number of steps that are done.
    fn steps_done(&self) -> usize {
        self.next_steps.iter().filter(|step| step.is_done).count()
    }
}

/// A step after the set-up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NextStepRow {
    /// True if it is done.
    pub is_done: bool,
    /// Address of the screen on which it is done.
    pub href: String,
    /// The step.
    pub title: &'static str,
    /// One sentence.
    pub sentence: &'static str,
}

/// The overview.
#[template_file("dashboard/overview.html")]
#[derive(Debug, Clone)]
pub(crate) struct OverviewScreen {
    frame: Frame,
    lead: String,
    parts: OverviewParts,
    /// Rows that are not listed.
    more: usize,
}

impl OverviewScreen {
    /// Builds the overview.
    pub(crate) fn new(frame: Frame, mut parts: OverviewParts) -> Self {
        let more = parts.attention.len().saturating_sub(MAX_ROWS);
        parts.attention.truncate(MAX_ROWS);
        let lead = format!(
            "{}, {}, checked from {}",
            words::count(parts.pages.len(), "page", "pages"),
            words::count(parts.monitors.0, "monitor", "monitors"),
            words::count(parts.regions, "region", "regions"),
        );
        Self { frame, lead, parts, more }
    }
}

#[cfg(test)]
mod tests;
