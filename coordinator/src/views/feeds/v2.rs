//! Statuspage-compatible API (`/api/v2/` of Atlassian Statuspage): field names, values and nesting are
//! theirs. Additional fields begin with `parallax_`.

mod words;

use std::collections::BTreeMap;
use std::fmt::Write;

use parallax_core::board::{Board, Notice, Shown};
use parallax_core::id::MonitorId;
use parallax_core::incident::Kind;
use parallax_core::time::Timestamp;
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::{Site, Unwritable, is_under_way, listed, share_of};

/// Size in bytes of an incident's updates in a list of normal length; the newest update is always included.
const TOLD: usize = 16 * 1024;
/// Maximum number of components of an incident in such a list.
const TOUCHED: usize = 500;

/// A document of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sheet {
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

/// Writes a document of a page; `notices` are newest first.
///
/// # Errors
/// None known: the document consists of strings, numbers and lists.
pub fn write(sheet: Sheet, site: Site<'_>, board: &Board, notices: &[Notice]) -> Result<Vec<u8>, Unwritable> {
    let scene = Scene { site, board, notices, components: components(board) };
    let of = |kind: Kind, wanted: &dyn Fn(&Notice) -> bool| {
        let wanted = move |notice: &&Notice| notice.incident.kind == kind && wanted(notice);
        let found: Vec<&Notice> = listed(notices.iter().filter(wanted)).collect();
        found.iter().map(|notice| scene.event(notice, found.len())).collect::<Vec<_>>()
    };
    let is_open = |notice: &Notice| notice.incident.is_open();
    let is_active = |notice: &Notice| is_under_way(&notice.incident, board.now);
    let mut document = Document { page: scene.page(), ..Document::default() };
    match sheet {
        Sheet::Summary => {
            document.status = Some(words::status(board));
            document.components = Some(&scene.components);
            document.incidents = Some(of(Kind::Incident, &is_open));
            document.scheduled_maintenances = Some(of(Kind::Maintenance, &is_open));
        }
        Sheet::Status => document.status = Some(words::status(board)),
        Sheet::Components => document.components = Some(&scene.components),
        Sheet::Incidents => document.incidents = Some(of(Kind::Incident, &|_| true)),
        Sheet::Unresolved => document.incidents = Some(of(Kind::Incident, &is_open)),
        Sheet::Maintenances => document.scheduled_maintenances = Some(of(Kind::Maintenance, &|_| true)),
        Sheet::Upcoming => {
            let is_upcoming = |notice: &Notice| is_open(notice) && !is_active(notice);
            document.scheduled_maintenances = Some(of(Kind::Maintenance, &is_upcoming));
        }
        Sheet::Active => document.scheduled_maintenances = Some(of(Kind::Maintenance, &is_active)),
    }
    Ok(serde_json::to_vec(&document)?)
}

/// A document: the page and the parts that belong to it.
#[derive(Debug, Default, Serialize)]
struct Document<'a> {
    page: PageOf,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<words::Whole>,
    #[serde(skip_serializing_if = "Option::is_none")]
    components: Option<&'a [Component]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    incidents: Option<Vec<Event>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scheduled_maintenances: Option<Vec<Event>>,
}

#[derive(Debug, Default, Serialize)]
struct PageOf {
    id: String,
    name: String,
    url: String,
    time_zone: String,
    updated_at: String,
}

/// A monitor or a group of monitors.
#[derive(Debug, Clone, Serialize)]
struct Component {
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
struct Event {
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
    incident_updates: Vec<Said>,
    components: Vec<Component>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scheduled_for: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scheduled_until: Option<String>,
}

#[derive(Debug, Serialize)]
struct Said {
    id: String,
    status: String,
    body: String,
    incident_id: String,
    created_at: String,
    updated_at: String,
    display_at: String,
    affected_components: Option<Vec<Touched>>,
    deliver_notifications: bool,
}

#[derive(Debug, Serialize)]
struct Touched {
    code: String,
    name: String,
}

struct Scene<'a> {
    site: Site<'a>,
    board: &'a Board,
    notices: &'a [Notice],
    components: Vec<Component>,
}

impl Scene<'_> {
    fn page(&self) -> PageOf {
        let page = self.site.page;
        let changes = self.board.monitors.iter().filter_map(|shown| shown.view.since);
        let words = self.notices.iter().map(|notice| notice.incident.last_word());
        PageOf {
            id: page.id.to_string(),
            name: page.name.clone(),
            url: self.site.address.to_owned(),
            time_zone: page.timezone.name().to_owned(),
            updated_at: changes.chain(words).fold(page.created_at, Timestamp::max).to_string(),
        }
    }

    fn event(&self, notice: &Notice, count: usize) -> Event {
        let incident = &notice.incident;
        let is_window = incident.kind == Kind::Maintenance;
        let covers_all = is_window && incident.affected.is_empty();
        let ids: Vec<String> = notice.monitors.iter().map(|(id, ..)| id.to_string()).collect();
        let is_touched = |part: &&Component| !part.group && (covers_all || ids.contains(&part.id));
        let watched = incident.updates.iter().find(|update| update.status == "monitoring");
        Event {
            id: incident.id.to_string(),
            name: incident.title.clone(),
            status: words::progress(incident, self.board.now),
            created_at: incident.made_at().to_string(),
            updated_at: incident.last_word().to_string(),
            monitoring_at: watched.map(|update| update.created_at.to_string()),
            resolved_at: incident.resolved_at.map(|at| at.to_string()),
            impact: words::impact(incident),
            shortlink: self.site.incident(incident),
            started_at: incident.started_at.to_string(),
            page_id: incident.page.to_string(),
            incident_updates: updates(notice, share_of(TOLD, count)),
            components: self
                .components
                .iter()
                .filter(is_touched)
                .take(share_of(TOUCHED, count))
                .cloned()
                .collect(),
            scheduled_for: is_window.then(|| incident.planned_start().to_string()),
            scheduled_until: incident.ends_at.filter(|_| is_window).map(|at| at.to_string()),
        }
    }
}

/// Newest first, as many as fit.
fn updates(notice: &Notice, mut room: usize) -> Vec<Said> {
    let incident = &notice.incident;
    let mut said = Vec::new();
    for update in incident.updates.iter().rev() {
        if update.body.len() > room && !said.is_empty() {
            break;
        }
        room = room.saturating_sub(update.body.len());
        let at = update.created_at.to_string();
        // Past affected monitors are not stored; the newest update gets those affected now.
        let touched = said.is_empty().then(|| {
            let touched =
                |(id, name, _): &(MonitorId, String, _)| Touched { code: id.to_string(), name: name.clone() };
            notice.monitors.iter().map(touched).collect()
        });
        said.push(Said {
            id: update.id.to_string(),
            status: update.status.clone(),
            body: update.body.clone(),
            incident_id: incident.id.to_string(),
            created_at: at.clone(),
            updated_at: at.clone(),
            display_at: at,
            affected_components: touched,
            deliver_notifications: incident.notify,
        });
    }
    said
}

/// Monitors in page order, each group before its first monitor.
fn components(board: &Board) -> Vec<Component> {
    let mut groups: BTreeMap<&str, Vec<&Shown>> = BTreeMap::new();
    for shown in &board.monitors {
        if let Some(group) = shown.monitor.group.as_deref() {
            groups.entry(group).or_default().push(shown);
        }
    }
    let mut parts: Vec<Component> = Vec::new();
    for shown in &board.monitors {
        let group = shown.monitor.group.as_deref();
        let group_id = group.map(|name| group_id(board, name));
        if let Some((name, id)) = group.zip(group_id.as_ref())
            && let Some(children) = groups.remove(name)
        {
            parts.push(container(board, name, id, &children, parts.len() + 1));
        }
        let changed = shown.view.since.unwrap_or(shown.monitor.created_at);
        parts.push(Component {
            id: shown.monitor.id.to_string(),
            name: shown.monitor.name.clone(),
            status: words::state(shown),
            created_at: shown.monitor.created_at.to_string(),
            updated_at: changed.max(shown.monitor.created_at).to_string(),
            position: parts.len() + 1,
            description: None,
            showcase: true,
            start_date: shown.monitor.created_at.to_utc().map(|at| at.format("%Y-%m-%d").to_string()),
            group_id,
            page_id: board.page.id.to_string(),
            group: false,
            only_show_if_degraded: false,
            components: None,
            parallax_status: Some(shown.view.status.name()),
        });
    }
    parts
}

fn container(board: &Board, name: &str, id: &str, children: &[&Shown], position: usize) -> Component {
    let made = children.iter().map(|shown| shown.monitor.created_at).min();
    let changed = children.iter().filter_map(|shown| shown.view.since).max();
    let made = made.unwrap_or(board.page.created_at);
    Component {
        id: id.to_owned(),
        name: name.to_owned(),
        status: words::worst(children),
        created_at: made.to_string(),
        updated_at: changed.unwrap_or(made).max(made).to_string(),
        position,
        description: None,
        showcase: false,
        start_date: None,
        group_id: None,
        page_id: board.page.id.to_string(),
        group: true,
        only_show_if_degraded: false,
        components: Some(children.iter().map(|shown| shown.monitor.id.to_string()).collect()),
        parallax_status: None,
    }
}

/// A group has no record, so its id is derived from the page and its name.
fn group_id(board: &Board, name: &str) -> String {
    let mut id = String::from("grp_");
    for byte in Sha256::digest(format!("{}\n{name}", board.page.id).as_bytes()).iter().take(13) {
        // Writing to a string does not fail.
        let _ = write!(id, "{byte:02x}");
    }
    id
}
