//! Monitor groups of a page; on a large page, groups without problems are collapsed.

use parallax_core::page_view::{IncidentView, MonitorView, PageView};
use parallax_core::time::Timestamp;
use parallax_i18n::page_messages::{PageMessages, fill, messages};
use sha2::{Digest, Sha256};

use super::monitor::MonitorRow;
use super::monitor_state::MonitorStateLabel;

/// Up to this many monitors, a page shows all of them expanded.
const MAX_EXPANDED: usize = 15;

/// A group of monitors.
#[derive(Debug, Clone)]
pub(super) struct MonitorGroup {
    /// Name; monitors without a group form one without a name.
    pub name: Option<String>,
    /// Element id in the document, independent of position.
    pub id: String,
    /// Overall state of its monitors.
    pub state: MonitorStateLabel,
    /// True if expanded.
    pub is_open: bool,
    /// Its monitors.
    pub rows: Vec<MonitorRow>,
}

/// Returns the groups in order of their first monitors; each keeps the page's order.
pub(super) fn build_groups(page_view: &PageView, root: &str) -> Vec<MonitorGroup> {
    let messages = messages(page_view.page.language);
    let is_small = page_view.monitors.len() <= MAX_EXPANDED;
    let mut groups: Vec<(Option<&str>, Vec<&MonitorView>)> = Vec::new();
    for view in &page_view.monitors {
        let name = view.monitor.group.as_deref();
        match groups.iter_mut().find(|(known, _)| *known == name) {
            Some((_, group)) => group.push(view),
            None => groups.push((name, vec![view])),
        }
    }
    let group = |(name, monitors): (Option<&str>, Vec<&MonitorView>)| {
        let rows: Vec<MonitorRow> = monitors
            .iter()
            .map(|view| MonitorRow::of(view, page_view, root, &incident_starts(view, page_view)))
            .collect();
        let active: Vec<&MonitorRow> =
            monitors.iter().zip(&rows).filter(|(view, _)| !view.monitor.paused).map(|(_, row)| row).collect();
        let state = group_state(&active, messages);
        let all_up = active.iter().all(|row| row.state.class == "up");
        MonitorGroup {
            name: name.map(str::to_owned),
            id: element_id(name.unwrap_or_default()),
            state,
            is_open: is_small || !all_up,
            rows,
        }
    };
    groups.into_iter().map(group).collect()
}

/// Overall state of a group's active monitors: the worst state, with the monitor's name if it is only one.
fn group_state(rows: &[&MonitorRow], messages: &PageMessages) -> MonitorStateLabel {
    let with_class = |classes: &[&str]| -> Vec<&MonitorRow> {
        rows.iter().copied().filter(|row| classes.contains(&row.state.class)).collect()
    };
    let worst_of = |class, affected: &[&MonitorRow], one: &str, many: &str| {
        let text = match affected {
            [row] if row.state.class == "part" => row.state.text.clone(),
            [row] => fill(one, &[&row.name]),
            _ => fill(many, &[&affected.len().to_string(), &rows.len().to_string()]),
        };
        MonitorStateLabel { class, text }
    };
    let (down, slow) = (with_class(&["down", "part"]), with_class(&["slow"]));
    if !down.is_empty() {
        let is_all = down.len() == rows.len() && down.iter().all(|row| row.state.class == "down");
        return worst_of(if is_all { "down" } else { "part" }, &down, messages.is_down, messages.many_down);
    }
    if !slow.is_empty() {
        return worst_of("slow", &slow, messages.is_slow, messages.many_slow);
    }
    if !with_class(&["maint"]).is_empty() {
        return MonitorStateLabel { class: "maint", text: messages.in_maintenance_now.to_owned() };
    }
    match (rows, with_class(&["none"]).first()) {
        ([], _) => MonitorStateLabel { class: "none", text: messages.state_paused.to_owned() },
        (_, Some(first)) if rows.iter().all(|row| row.state == first.state) => first.state.clone(),
        (_, Some(_)) => MonitorStateLabel { class: "none", text: messages.state_no_data.to_owned() },
        (_, None) => MonitorStateLabel { class: "up", text: messages.state_up.to_owned() },
    }
}

/// Start times of a monitor's incidents.
fn incident_starts(view: &MonitorView, page_view: &PageView) -> Vec<Timestamp> {
    let incident_views = page_view.incidents.iter().chain(&page_view.past_incidents);
    incident_views
        .filter(|incident_view| incident_view.affects(view.monitor.id))
        .filter_map(IncidentView::outage_start)
        .collect()
}

/// Hash of the name: a name may contain anything, an id no spaces.
fn element_id(name: &str) -> String {
    format!("g{}", hex::encode(&Sha256::digest(name.as_bytes())[..4]))
}

#[cfg(test)]
mod tests {
    use parallax_core::event::MonitorStatus;
    use parallax_core::headline::Indicator;
    use parallax_core::vantage::RegionSet;

    use super::*;
    use crate::views::tests::{monitor_view, page_view};

    fn large_page(statuses: &[MonitorStatus]) -> PageView {
        let others =
            (10..10 + MAX_EXPANDED as u32).map(|number| monitor_view(number, "Other", "Rest", MonitorStatus::Up, 9));
        let jobs = statuses.iter().zip(1..);
        let jobs = jobs.map(|(status, number)| monitor_view(number, &format!("Job {number}"), "Jobs", *status, 9));
        let monitors = jobs.chain(others).collect();
        PageView { monitors, incidents: Vec::new(), indicator: Indicator::Operational, ..page_view() }
    }

    fn first(page_view: &PageView) -> (bool, &'static str, String) {
        let group = build_groups(page_view, "").swap_remove(0);
        (group.is_open, group.state.class, group.state.text)
    }

    #[test]
    fn a_group_shows_its_worst_state_and_collapses_only_if_all_is_up() {
        use MonitorStatus::{Down, Slow, Unknown, Up};
        for (statuses, is_open, class, text) in [
            (&[Up, Up][..], false, "up", "Up"),
            (&[Up, Down], true, "part", "Job 2 is down"),
            (&[Down, Down], true, "down", "2 of 2 services are down"),
            (&[Slow, Up, Unknown], true, "slow", "Job 1 is slow"),
            (&[Up, Unknown], true, "none", "No data"),
        ] {
            assert_eq!(first(&large_page(statuses)), (is_open, class, text.to_owned()), "{statuses:?}");
        }
    }

    #[test]
    fn unchecked_monitors_do_not_count_as_up() {
        let fresh = PageView { regions: RegionSet::NONE, ..large_page(&[MonitorStatus::Up]) };
        let stale = PageView { now: fresh.now + 15_000, ..fresh };
        assert_eq!(first(&stale), (true, "none", "Was up".to_owned()));
        let mut paused = large_page(&[MonitorStatus::Up, MonitorStatus::Down]);
        paused.monitors[1].monitor.paused = true;
        assert_eq!(first(&paused), (false, "up", "Up".to_owned()), "paused monitors don't count");
        let mut in_maintenance = large_page(&[MonitorStatus::Down]);
        in_maintenance.monitors[0].in_maintenance = true;
        assert_eq!(first(&in_maintenance), (true, "maint", "Maintenance in progress".to_owned()));
    }

    #[test]
    fn a_small_page_expands_all_groups_and_ids_do_not_depend_on_order() {
        let mut small_page = large_page(&[MonitorStatus::Up]);
        small_page.monitors.truncate(MAX_EXPANDED);
        assert!(build_groups(&small_page, "").iter().all(|group| group.is_open));
        let before = build_groups(&small_page, "");
        small_page.monitors.reverse();
        let after = build_groups(&small_page, "");
        assert_eq!((&before[0].id, &before[1].id), (&after[1].id, &after[0].id));
    }
}
