//! Choices of the forms of incidents: the page's monitors with their states, and the receivers of an update.

use chrono_tz::Tz;
use parallax_core::event::MonitorStatus;
use parallax_core::id::PageId;
use parallax_core::incident::{Impact, Incident, IncidentKind};
use parallax_core::locale::Locale;
use parallax_core::page::branding::Language;
use parallax_core::time::Timestamp;
use parallax_core::vantage::RegionSet;
use parallax_service::Caller;
use parallax_service::monitors::MonitorWithState;
use serde_json::{Value, json};

use super::IncidentContext;
use crate::http::HttpContext;
use crate::http::dashboard::forms::Form;
use crate::http::dashboard::frame::without_scheme;
use crate::http::dashboard::page_screen::PageScreen;
use crate::http::error::ApiError;
use crate::http::json_body::JsonObject;
use crate::views::dashboard::incidents::{AffectedMonitorChoice, IncidentChoices, Receivers, affected_value};
use crate::views::dashboard::window_times::zone_text;

/// Zones that every form offers, beside the page's own.
const ZONES: [Tz; 38] = [
    Tz::UTC,
    Tz::Pacific__Honolulu,
    Tz::America__Anchorage,
    Tz::America__Los_Angeles,
    Tz::America__Denver,
    Tz::America__Phoenix,
    Tz::America__Chicago,
    Tz::America__Mexico_City,
    Tz::America__New_York,
    Tz::America__Toronto,
    Tz::America__Bogota,
    Tz::America__Halifax,
    Tz::America__Santiago,
    Tz::America__Sao_Paulo,
    Tz::America__Argentina__Buenos_Aires,
    Tz::Atlantic__Azores,
    Tz::Europe__London,
    Tz::Europe__Lisbon,
    Tz::Africa__Lagos,
    Tz::Europe__Berlin,
    Tz::Europe__Paris,
    Tz::Europe__Madrid,
    Tz::Africa__Johannesburg,
    Tz::Africa__Cairo,
    Tz::Europe__Helsinki,
    Tz::Europe__Istanbul,
    Tz::Africa__Nairobi,
    Tz::Asia__Dubai,
    Tz::Asia__Karachi,
    Tz::Asia__Kolkata,
    Tz::Asia__Dhaka,
    Tz::Asia__Bangkok,
    Tz::Asia__Singapore,
    Tz::Asia__Shanghai,
    Tz::Asia__Tokyo,
    Tz::Australia__Perth,
    Tz::Australia__Sydney,
    Tz::Pacific__Auckland,
];

/// Returns true if the query asks for maintenance rather than incidents.
pub(super) fn is_maintenance(query: &str) -> bool {
    Form::parse(query.as_bytes()).is_ok_and(|query| query.text("kind") == IncidentKind::Maintenance.name())
}

/// Reads what a form of incidents offers.
pub(super) async fn choices(
    context: &HttpContext,
    caller: &Caller,
    page_screen: &PageScreen,
) -> Result<IncidentChoices, ApiError> {
    let monitors = context.service.monitors.list(caller, page_screen.page.id).await?;
    let mut monitors: Vec<AffectedMonitorChoice> = monitors.iter().map(monitor_choice).collect();
    // Those in trouble first; otherwise in the order of the page.
    monitors.sort_by_key(|monitor| !monitor.is_troubled());
    let counts = context.service.subscribers.recent_counts(caller, page_screen.page.id).await?;
    Ok(IncidentChoices {
        monitors,
        receivers: Receivers { email: counts.email, webhook: counts.webhook },
        address: without_scheme(&context.service.pages.url(&page_screen.page)).to_owned(),
    })
}

fn monitor_choice(monitor: &MonitorWithState) -> AffectedMonitorChoice {
    let from = |word: &str, regions: Option<RegionSet>| match regions {
        Some(regions) => format!("{word} from {}", Locale::of(Language::En).regions(regions)),
        None => word.to_owned(),
    };
    let state = match monitor.view.status {
        _ if monitor.monitor.paused => ("none", "Paused".to_owned()),
        MonitorStatus::Unknown => ("none", "No data".to_owned()),
        MonitorStatus::Up => ("up", "Up".to_owned()),
        MonitorStatus::Slow => ("slow", from("Slow", monitor.view.slow_from)),
        MonitorStatus::Down => ("down", from("Down", monitor.view.down_from)),
    };
    AffectedMonitorChoice { id: monitor.monitor.id.to_string(), name: monitor.monitor.name.clone(), state }
}

/// Returns the affected monitors of an incident with the addresses of their screens.
pub(super) fn affected(incident: &IncidentContext, choices: &IncidentChoices) -> Vec<(String, AffectedMonitorChoice)> {
    let affected = &incident.detail.incident.affected;
    let is_affected = |choice: &&AffectedMonitorChoice| affected.iter().any(|it| it.monitor.to_string() == choice.id);
    let with_address = |choice: &AffectedMonitorChoice| {
        (format!("{}/monitors/{}", incident.page_screen.base, choice.id), choice.clone())
    };
    choices.monitors.iter().filter(is_affected).map(with_address).collect()
}

/// Returns the zones to choose from, with their present offsets: the common ones, the page's, and the chosen one.
pub(in crate::http::dashboard) fn zones(page: Tz, chosen: &str, now: Timestamp) -> Vec<(&'static str, String)> {
    let mut zones: Vec<Tz> = vec![page];
    zones.extend(chosen.parse::<Tz>().ok().filter(|chosen| *chosen != page));
    zones.extend(ZONES.into_iter().filter(|zone| *zone != page && zone.name() != chosen));
    zones.into_iter().map(|zone| (zone.name(), zone_text(zone, now))).collect()
}

/// Values of the fields that a form of an incident changes, as the API's body has them.
pub(super) fn current_values(incident: &Incident) -> JsonObject {
    let monitors: Vec<Value> = incident
        .affected
        .iter()
        .map(|affected| match affected.impact {
            Some(impact) => json!({ "id": affected.monitor.to_string(), "impact": impact.name() }),
            None => json!({ "id": affected.monitor.to_string() }),
        })
        .collect();
    let remind: Vec<Value> = incident.remind.iter().map(|it| json!(it.to_string())).collect();
    let or_null = |list: Vec<Value>| if list.is_empty() { Value::Null } else { Value::Array(list) };
    let values = [
        ("title", json!(incident.title)),
        ("impact", json!(incident.impact.name())),
        ("monitors", or_null(sorted(monitors))),
        ("remind", or_null(remind)),
        ("postmortem", json!(incident.postmortem)),
    ];
    values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Sorts affected monitors, whose order means nothing.
fn sorted(mut monitors: Vec<Value>) -> Vec<Value> {
    monitors.sort_by_key(ToString::to_string);
    monitors
}

/// Fills the fields of a form of an incident.
pub(super) fn fill(form: &mut Form, incident: &Incident) {
    form.set("title", &incident.title);
    form.set("impact", incident.impact.name());
    for affected in &incident.affected {
        form.add("monitors", affected_value(affected.monitor, affected.impact));
    }
    let remind: Vec<String> = incident.remind.iter().map(ToString::to_string).collect();
    form.set("remind", remind.join(", "));
}

/// Form of a stored incident.
pub(super) fn stored(incident: &Incident) -> Form {
    let mut form = Form::default();
    fill(&mut form, incident);
    form
}

/// Writes the values of a form as the API's body has them: reminders are typed on one line, separated by commas, and
/// the order of monitors means nothing.
pub(super) fn normalize(form: &Form) -> Form {
    let mut normal = form.clone();
    split_list(&mut normal, "remind");
    let mut monitors: Vec<String> = form.all("monitors").map(str::to_owned).collect();
    monitors.sort_unstable();
    if form.has("monitors") {
        normal.set("monitors", "");
        monitors.into_iter().for_each(|monitor| normal.add("monitors", monitor));
    }
    normal
}

/// Splits the values of a field at commas.
pub(super) fn split_list(form: &mut Form, name: &str) {
    if !form.has(name) {
        return;
    }
    let entries: Vec<String> =
        form.all(name).flat_map(|text| text.split(',').map(|entry| entry.trim().to_owned())).collect();
    form.set(name, "");
    entries.into_iter().for_each(|entry| form.add(name, entry));
}

/// Returns the impact of a form.
pub(super) fn impact_of(form: &Form) -> Impact {
    Impact::ALL.into_iter().find(|impact| impact.name() == form.text("impact")).unwrap_or(Impact::Partial)
}

/// Number of messages that the toast of a posted form names; one for a form that notifies nobody.
pub(super) async fn notified(context: &HttpContext, caller: &Caller, page: PageId, form: &Form) -> usize {
    if !form.is_on("notify") {
        return 1;
    }
    context.service.subscribers.recent_counts(caller, page).await.map_or(1, |counts| counts.confirmed().max(1))
}
