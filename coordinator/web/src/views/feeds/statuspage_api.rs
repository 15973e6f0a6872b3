//! Statuspage-compatible API (`/api/v2/` of Atlassian Statuspage), with the same field names, values
//! and nesting. Additional fields begin with `parallax_`.

mod mapping;

use std::collections::BTreeMap;

use parallax_core::id::MonitorId;
use parallax_core::incident::IncidentKind;
use parallax_core::page_view::{IncidentView, MonitorView, PageView};
use parallax_core::time::Timestamp;
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::{FeedError, FeedSite, is_in_progress, limit_entries, scaled_limit};

/// Size in bytes of an incident's updates in a list of normal length; the newest update is always included.
const MAX_UPDATE_BYTES: usize = 16 * 1024;
/// Maximum number of components of an incident in such a list.
const MAX_COMPONENTS: usize = 500;

/// A document of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StatuspageDocument {
    /// Everything current.
    Summary,
    /// Overall status.
    Status,
    /// Monitors and their groups.
    Components,
    /// Newest incidents.
    Incidents,
    /// Open incidents.
    Unresolved,
    /// Newest maintenance windows.
    Maintenances,
    /// Upcoming maintenance windows.
    Upcoming,
    /// Maintenance windows in progress.
    Active,
}

/// Writes a document of a page; `incident_views` are newest first.
///
/// # Errors
/// None known: the document consists of strings, numbers and lists.
pub(crate) fn write(
    kind: StatuspageDocument,
    site: FeedSite<'_>,
    page_view: &PageView,
    incident_views: &[IncidentView],
) -> Result<Vec<u8>, FeedError> {
    let context = StatuspageContext { site, page_view, incident_views, components: components(page_view) };
    let incidents_of = |incident_kind: IncidentKind, matches: &dyn Fn(&IncidentView) -> bool| {
        let is_listed =
            move |incident_view: &&IncidentView| incident_view.incident.kind == incident_kind && matches(incident_view);
        let listed: Vec<&IncidentView> = limit_entries(incident_views.iter().filter(is_listed)).collect();
        listed.iter().map(|incident_view| context.event(incident_view, listed.len())).collect::<Vec<_>>()
    };
    let is_open = |incident_view: &IncidentView| incident_view.incident.is_open();
    let is_active = |incident_view: &IncidentView| is_in_progress(&incident_view.incident, page_view.now);
    let mut document = StatuspageBody { page: context.page(), ..StatuspageBody::default() };
    match kind {
        StatuspageDocument::Summary => {
            document.status = Some(mapping::overall_status(page_view));
            document.components = Some(&context.components);
            document.incidents = Some(incidents_of(IncidentKind::Incident, &is_open));
            document.scheduled_maintenances = Some(incidents_of(IncidentKind::Maintenance, &is_open));
        }
        StatuspageDocument::Status => document.status = Some(mapping::overall_status(page_view)),
        StatuspageDocument::Components => document.components = Some(&context.components),
        StatuspageDocument::Incidents => document.incidents = Some(incidents_of(IncidentKind::Incident, &|_| true)),
        StatuspageDocument::Unresolved => document.incidents = Some(incidents_of(IncidentKind::Incident, &is_open)),
        StatuspageDocument::Maintenances => {
            document.scheduled_maintenances = Some(incidents_of(IncidentKind::Maintenance, &|_| true))
        }
        StatuspageDocument::Upcoming => {
            let is_upcoming = |incident_view: &IncidentView| is_open(incident_view) && !is_active(incident_view);
            document.scheduled_maintenances = Some(incidents_of(IncidentKind::Maintenance, &is_upcoming));
        }
        StatuspageDocument::Active => {
            document.scheduled_maintenances = Some(incidents_of(IncidentKind::Maintenance, &is_active))
        }
    }
    Ok(serde_json::to_vec(&document)?)
}

/// A document: the page and the parts that belong to it.
#[derive(Debug, Default, Serialize)]
struct StatuspageBody<'a> {
    page: StatuspagePage,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<mapping::StatuspageStatus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    components: Option<&'a [StatuspageComponent]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    incidents: Option<Vec<StatuspageIncident>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scheduled_maintenances: Option<Vec<StatuspageIncident>>,
}

#[derive(Debug, Default, Serialize)]
struct StatuspagePage {
    id: String,
    name: String,
    url: String,
    time_zone: String,
    updated_at: String,
}

/// A monitor or a group of monitors.
#[derive(Debug, Clone, Serialize)]
struct StatuspageComponent {
    id: String,
    name: String,
    status: &'static str,
    created_at: String,
    updated_at: String,
    position: usize,
    description: Option<String>,
    showcase: bool,
    start_date: Option<String>,
    group_id: Option<String>,
    page_id: String,
    group: bool,
    only_show_if_degraded: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    components: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parallax_status: Option<&'static str>,
}

/// An incident or a maintenance window.
#[derive(Debug, Serialize)]
struct StatuspageIncident {
    id: String,
    name: String,
    status: &'static str,
    created_at: String,
    updated_at: String,
    monitoring_at: Option<String>,
    resolved_at: Option<String>,
    impact: &'static str,
    shortlink: String,
    started_at: String,
    page_id: String,
    incident_updates: Vec<StatuspageUpdate>,
    components: Vec<StatuspageComponent>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scheduled_for: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scheduled_until: Option<String>,
}

#[derive(Debug, Serialize)]
struct StatuspageUpdate {
    id: String,
    status: String,
    body: String,
    incident_id: String,
    created_at: String,
    updated_at: String,
    display_at: String,
    affected_components: Option<Vec<AffectedComponent>>,
    deliver_notifications: bool,
}

#[derive(Debug, Serialize)]
struct AffectedComponent {
    code: String,
    name: String,
}

struct StatuspageContext<'a> {
    site: FeedSite<'a>,
    page_view: &'a PageView,
    incident_views: &'a [IncidentView],
    components: Vec<StatuspageComponent>,
}

impl StatuspageContext<'_> {
    fn page(&self) -> StatuspagePage {
        let page = self.site.page;
        let changes = self.page_view.monitors.iter().filter_map(|view| view.state.since);
        let updates = self.incident_views.iter().map(|incident_view| incident_view.incident.last_change());
        StatuspagePage {
            id: page.id.to_string(),
            name: page.name.clone(),
            url: self.site.url.to_owned(),
            time_zone: page.timezone.name().to_owned(),
            updated_at: changes.chain(updates).fold(page.created_at, Timestamp::max).to_string(),
        }
    }

    fn event(&self, incident_view: &IncidentView, count: usize) -> StatuspageIncident {
        let incident = &incident_view.incident;
        let is_window = incident.kind == IncidentKind::Maintenance;
        let covers_all = is_window && incident.affected.is_empty();
        let ids: Vec<String> = incident_view.monitors.iter().map(|(id, ..)| id.to_string()).collect();
        let is_affected =
            |component: &&StatuspageComponent| !component.group && (covers_all || ids.contains(&component.id));
        let monitoring_update = incident.updates.iter().find(|update| update.status == "monitoring");
        StatuspageIncident {
            id: incident.id.to_string(),
            name: incident.title.clone(),
            status: mapping::incident_status(incident, self.page_view.now),
            created_at: incident.published_at().to_string(),
            updated_at: incident.last_change().to_string(),
            monitoring_at: monitoring_update.map(|update| update.created_at.to_string()),
            resolved_at: incident.resolved_at.map(|at| at.to_string()),
            impact: mapping::impact(incident),
            shortlink: self.site.incident_url(incident),
            started_at: incident.started_at.to_string(),
            page_id: incident.page.to_string(),
            incident_updates: updates(incident_view, scaled_limit(MAX_UPDATE_BYTES, count)),
            components: self
                .components
                .iter()
                .filter(is_affected)
                .take(scaled_limit(MAX_COMPONENTS, count))
                .cloned()
                .collect(),
            scheduled_for: is_window.then(|| incident.planned_start().to_string()),
            scheduled_until: incident.ends_at.filter(|_| is_window).map(|at| at.to_string()),
        }
    }
}

/// Newest first, as many as fit.
fn updates(incident_view: &IncidentView, mut bytes_left: usize) -> Vec<StatuspageUpdate> {
    let incident = &incident_view.incident;
    let mut listed = Vec::new();
    for update in incident.updates.iter().rev() {
        if update.body.len() > bytes_left && !listed.is_empty() {
            break;
        }
        bytes_left = bytes_left.saturating_sub(update.body.len());
        let at = update.created_at.to_string();
        // Past affected monitors are not stored; the newest update gets those affected now.
        let affected = listed.is_empty().then(|| {
            let affected =
                |(id, name, _): &(MonitorId, String, _)| AffectedComponent { code: id.to_string(), name: name.clone() };
            incident_view.monitors.iter().map(affected).collect()
        });
        listed.push(StatuspageUpdate {
            id: update.id.to_string(),
            status: update.status.clone(),
            body: update.body.clone(),
            incident_id: incident.id.to_string(),
            created_at: at.clone(),
            updated_at: at.clone(),
            display_at: at,
            affected_components: affected,
            deliver_notifications: incident.notify,
        });
    }
    listed
}

/// Monitors in page order, each group before its first monitor.
fn components(page_view: &PageView) -> Vec<StatuspageComponent> {
    let mut groups: BTreeMap<&str, Vec<&MonitorView>> = BTreeMap::new();
    for view in &page_view.monitors {
        if let Some(group) = view.monitor.group.as_deref() {
            groups.entry(group).or_default().push(view);
        }
    }
    let mut components: Vec<StatuspageComponent> = Vec::new();
    for view in &page_view.monitors {
        let group = view.monitor.group.as_deref();
        let group_id = group.map(|name| group_id(page_view, name));
        if let Some((name, id)) = group.zip(group_id.as_ref())
            && let Some(children) = groups.remove(name)
        {
            components.push(group_component(page_view, name, id, &children, components.len() + 1));
        }
        let changed_at = view.state.since.unwrap_or(view.monitor.created_at);
        components.push(StatuspageComponent {
            id: view.monitor.id.to_string(),
            name: view.monitor.name.clone(),
            status: mapping::component_status(view),
            created_at: view.monitor.created_at.to_string(),
            updated_at: changed_at.max(view.monitor.created_at).to_string(),
            position: components.len() + 1,
            description: None,
            showcase: true,
            start_date: view.monitor.created_at.to_utc().map(|at| at.format("%Y-%m-%d").to_string()),
            group_id,
            page_id: page_view.page.id.to_string(),
            group: false,
            only_show_if_degraded: false,
            components: None,
            parallax_status: Some(view.state.status.name()),
        });
    }
    components
}

fn group_component(
    page_view: &PageView,
    name: &str,
    id: &str,
    children: &[&MonitorView],
    position: usize,
) -> StatuspageComponent {
    let created_at = children.iter().map(|view| view.monitor.created_at).min();
    let changed_at = children.iter().filter_map(|view| view.state.since).max();
    let created_at = created_at.unwrap_or(page_view.page.created_at);
    StatuspageComponent {
        id: id.to_owned(),
        name: name.to_owned(),
        status: mapping::worst_status(children),
        created_at: created_at.to_string(),
        updated_at: changed_at.unwrap_or(created_at).max(created_at).to_string(),
        position,
        description: None,
        showcase: false,
        start_date: None,
        group_id: None,
        page_id: page_view.page.id.to_string(),
        group: true,
        only_show_if_degraded: false,
        components: Some(children.iter().map(|view| view.monitor.id.to_string()).collect()),
        parallax_status: None,
    }
}

/// A group has no record, so its id is derived from the page and its name.
fn group_id(page_view: &PageView, name: &str) -> String {
    let digest = Sha256::digest(format!("{}\n{name}", page_view.page.id).as_bytes());
    format!("grp_{}", hex::encode(&digest[..13]))
}
