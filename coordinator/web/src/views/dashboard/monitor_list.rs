//! List of a page's monitors: chips with counts, filters, rows by group, and what can be done with many.

use parallax_core::check::CheckKind;
use parallax_core::condition::Condition;
use parallax_core::id::MonitorId;
use parallax_core::page_view::UptimeSlice;
use parallax_i18n::page_messages::in_english;
use parallax_template::template_file;
use url::form_urlencoded;

use super::frame::Frame;
use super::state_label::{MonitorStatusInput, StateText, class_of, target_of};
use crate::views::uptime_bars::{StatePaths, state_paths};
use crate::views::{assets, format};

/// Number of rows from which healthy groups are drawn closed.
const FOLD_FROM: usize = 200;

/// Order of the list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum ListOrder {
    /// As on the page.
    #[default]
    Page,
    /// The worst state first.
    Worst,
    /// The longest response time first.
    Slowest,
    /// By name.
    Name,
}

impl ListOrder {
    /// All orders with the values and texts of their options.
    pub(crate) const ALL: [(Self, &'static str, &'static str); 4] = [
        (Self::Page, "page", "Page order"),
        (Self::Worst, "worst", "Worst first"),
        (Self::Slowest, "slowest", "Slowest first"),
        (Self::Name, "name", "Name"),
    ];
}

/// Chips of the list: value, text and icon. A chip has one condition or two.
const CHIPS: [(&str, &str, &str, &[Condition]); 7] = [
    ("down", "Down", "down", &[Condition::Down]),
    ("slow", "Slow", "slow", &[Condition::Slow]),
    ("unconfirmed", "Not confirmed", "part", &[Condition::Unconfirmed]),
    ("no-data", "No data", "none", &[Condition::Outdated, Condition::NoData]),
    ("maintenance", "Maintenance", "maint", &[Condition::Maintenance]),
    ("paused", "Paused", "pause", &[Condition::Paused]),
    ("up", "Up", "up", &[Condition::Up]),
];

/// Filter and order, from the query.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ListFilter {
    /// Value of a chip; none for all states.
    pub state: Option<String>,
    /// Part of the name or target.
    pub text: Option<String>,
    /// Name of a type.
    pub kind: Option<String>,
    /// Name of a group.
    pub group: Option<String>,
    /// Order.
    pub order: ListOrder,
}

impl ListFilter {
    /// Reads the query. Unknown states and types match nothing; an unknown order is the page's.
    pub(crate) fn read(query: &str) -> Self {
        let mut filter = Self::default();
        for (name, value) in form_urlencoded::parse(query.as_bytes()).filter(|(_, value)| !value.is_empty()) {
            let value = value.into_owned();
            match &*name {
                "state" => filter.state = Some(value),
                "q" => filter.text = Some(value),
                "type" => filter.kind = Some(value),
                "group" => filter.group = Some(value),
                "sort" => {
                    let known = ListOrder::ALL.into_iter().find(|(_, name, _)| *name == value);
                    filter.order = known.map(|(order, ..)| order).unwrap_or_default();
                }
                _ => {}
            }
        }
        filter
    }

    /// Query with another state, and all else as it is.
    fn with_state(&self, state: Option<&str>) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        let order = ListOrder::ALL.into_iter().find(|(order, ..)| *order == self.order).map(|(_, name, _)| name);
        let pairs = [
            ("state", state),
            ("q", self.text.as_deref()),
            ("type", self.kind.as_deref()),
            ("group", self.group.as_deref()),
            ("sort", order.filter(|_| self.order != ListOrder::Page)),
        ];
        for (name, value) in pairs {
            if let Some(value) = value {
                query.append_pair(name, value);
            }
        }
        format!("?{}", query.finish())
    }

    fn matches_state(&self, condition: Condition) -> bool {
        let Some(state) = &self.state else { return true };
        CHIPS.iter().any(|(name, .., conditions)| name == state && conditions.contains(&condition))
    }

    /// Everything but the state: the chips count what it leaves.
    fn matches_rest(&self, input: &RowInput<'_>) -> bool {
        let monitor = input.status.monitor;
        let text = self.text.as_ref().map(|text| text.to_lowercase());
        let is_named = text.is_none_or(|text| {
            let target = target_of(monitor).to_lowercase();
            monitor.name.to_lowercase().contains(&text)
                || target.contains(&text)
                || monitor.id.to_string() == text
                || monitor.group.as_ref().is_some_and(|group| group.to_lowercase().contains(&text))
        });
        let is_of_kind = self.kind.as_ref().is_none_or(|kind| monitor.check.kind().name() == kind);
        let is_in_group = self.group.as_ref().is_none_or(|group| monitor.group.as_ref() == Some(group));
        is_named && is_of_kind && is_in_group
    }
}

/// A monitor with the figures of its row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowInput<'a> {
    /// Monitor and state.
    pub status: MonitorStatusInput<'a>,
    /// Uptime of 24 hours in percent.
    pub uptime: Option<f64>,
    /// Median response time of 24 hours, in milliseconds.
    pub latency_ms: Option<u32>,
    /// Last 24 hours by the hour.
    pub slices: &'a [UptimeSlice],
}

/// A chip.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Chip {
    href: String,
    text: &'static str,
    icon: &'static str,
    class: &'static str,
    count: usize,
    is_current: bool,
}

/// A row.
#[derive(Debug, Clone, PartialEq, Eq)]
struct MonitorRow {
    id: MonitorId,
    name: String,
    target: String,
    state: StateText,
    strip: StatePaths,
    uptime: String,
    figure: String,
    is_paused: bool,
    is_heartbeat: bool,
}

/// Rows of one group.
#[derive(Debug, Clone, PartialEq, Eq)]
struct RowGroup {
    name: Option<String>,
    rows: Vec<MonitorRow>,
    /// False for a long list's groups without trouble.
    is_open: bool,
    count: String,
}

/// The list of a page's monitors.
#[template_file("dashboard/monitors.html")]
#[derive(Debug, Clone)]
pub(crate) struct MonitorListScreen {
    frame: Frame,
    /// Address of the list.
    path: String,
    lead: String,
    filter: ListFilter,
    chips: Vec<Chip>,
    kinds: Vec<(&'static str, String)>,
    groups_to_choose: Vec<String>,
    groups: Vec<RowGroup>,
    /// Number of rows.
    shown: usize,
    /// True if the page has no monitors at all.
    is_empty: bool,
    idempotency_key: String,
}

impl MonitorListScreen {
    /// Builds the list from the page's monitors in page order.
    pub(crate) fn new(
        frame: Frame,
        monitors: &[RowInput<'_>],
        filter: ListFilter,
        lead: String,
        idempotency_key: String,
    ) -> Self {
        let named: Vec<&RowInput<'_>> = monitors.iter().filter(|input| filter.matches_rest(input)).collect();
        let chips = chips(&named, &filter);
        let mut shown: Vec<&RowInput<'_>> =
            named.into_iter().filter(|input| filter.matches_state(input.status.condition)).collect();
        sort(&mut shown, filter.order);
        Self {
            path: frame.path("monitors"),
            lead,
            chips,
            kinds: kinds(monitors),
            groups_to_choose: group_names(monitors),
            shown: shown.len(),
            groups: row_groups(&shown, filter.order == ListOrder::Page),
            is_empty: monitors.is_empty(),
            filter,
            frame,
            idempotency_key,
        }
    }

    /// Value of the order's option.
    fn is_order(&self, order: &ListOrder) -> bool {
        self.filter.order == *order
    }

    fn is_kind(&self, kind: &str) -> bool {
        self.filter.kind.as_deref() == Some(kind)
    }

    fn is_group(&self, group: &str) -> bool {
        self.filter.group.as_deref() == Some(group)
    }
}

fn chips(named: &[&RowInput<'_>], filter: &ListFilter) -> Vec<Chip> {
    let all = Chip {
        href: filter.with_state(None),
        text: "All",
        icon: "",
        class: "",
        count: named.len(),
        is_current: filter.state.is_none(),
    };
    let chip = |(value, text, icon, conditions): &(&'static str, &'static str, &'static str, &[Condition])| Chip {
        href: filter.with_state(Some(value)),
        text,
        icon,
        class: conditions.first().map_or("none", |condition| class_of(*condition)),
        count: named.iter().filter(|input| conditions.contains(&input.status.condition)).count(),
        is_current: filter.state.as_deref() == Some(value),
    };
    let others = CHIPS.iter().map(chip).filter(|chip| chip.count > 0 || chip.is_current);
    std::iter::once(all).chain(others).collect()
}

fn kinds(monitors: &[RowInput<'_>]) -> Vec<(&'static str, String)> {
    let is_used = |kind: &CheckKind| monitors.iter().any(|input| input.status.monitor.check.kind() == *kind);
    let named = |kind: CheckKind| (kind.name(), kind_text(kind));
    CheckKind::ALL.into_iter().filter(is_used).map(named).collect()
}

/// Name of a type in the dashboard.
pub(crate) fn kind_text(kind: CheckKind) -> String {
    match kind {
        CheckKind::Http | CheckKind::Tcp | CheckKind::Dns => kind.name().to_uppercase(),
        CheckKind::Component => "Vendor".to_owned(),
        other => format::capitalize(other.name()),
    }
}

fn group_names(monitors: &[RowInput<'_>]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for group in monitors.iter().filter_map(|input| input.status.monitor.group.as_ref()) {
        if !names.contains(group) {
            names.push(group.clone());
        }
    }
    names
}

fn sort(rows: &mut [&RowInput<'_>], order: ListOrder) {
    let name = |input: &&RowInput<'_>| input.status.monitor.name.to_lowercase();
    match order {
        ListOrder::Page => {}
        ListOrder::Worst => rows.sort_by_key(|input| input.status.condition),
        ListOrder::Slowest => rows.sort_by_key(|input| std::cmp::Reverse(input.latency_ms)),
        ListOrder::Name => rows.sort_by_key(name),
    }
}

/// Splits rows into groups, in the order of their first rows. Rows in another order than the page's have no groups.
fn row_groups(shown: &[&RowInput<'_>], is_grouped: bool) -> Vec<RowGroup> {
    let mut groups: Vec<(Option<String>, Vec<&RowInput<'_>>)> = Vec::new();
    for input in shown {
        let name = input.status.monitor.group.clone().filter(|_| is_grouped);
        match groups.iter_mut().find(|(known, _)| *known == name) {
            Some((_, rows)) => rows.push(input),
            None => groups.push((name, vec![input])),
        }
    }
    let is_long = shown.len() > FOLD_FROM;
    let group = |(name, inputs): (Option<String>, Vec<&RowInput<'_>>)| {
        let is_troubled = inputs.iter().any(|input| input.status.condition.needs_attention());
        RowGroup {
            is_open: !is_long || is_troubled || name.is_none(),
            count: super::words::count(inputs.len(), "monitor", "monitors"),
            rows: inputs.into_iter().map(row).collect(),
            name,
        }
    };
    groups.into_iter().map(group).collect()
}

fn row(input: &RowInput<'_>) -> MonitorRow {
    let MonitorStatusInput { monitor, view, condition, .. } = input.status;
    let is_heartbeat = monitor.check.kind() == CheckKind::Heartbeat;
    let latency = input.latency_ms.map(|latency| format::format_milliseconds(latency, in_english()));
    let run = view.last_run_ms.map(super::words::elapsed);
    MonitorRow {
        id: monitor.id,
        name: monitor.name.clone(),
        target: target_of(monitor),
        state: StateText::of(input.status),
        strip: state_paths(input.slices, condition == Condition::Down),
        uptime: input.uptime.map_or_else(|| "–".to_owned(), |it| format::format_percent(it, in_english())),
        figure: if is_heartbeat { run } else { latency }.unwrap_or_else(|| "–".to_owned()),
        is_paused: condition == Condition::Paused,
        is_heartbeat,
    }
}

#[cfg(test)]
mod tests;
