//! Request bodies that open or change an incident or a maintenance window, or post an update; and the query of the
//! list.

use parallax_core::id::IncidentId;
use parallax_core::incident::edit::{IncidentEdit, MAX_MESSAGE, MAX_POSTMORTEM, MAX_TITLE};
use parallax_core::incident::{Impact, IncidentKind, IncidentStatus, MAX_AFFECTED, UpdatePost};
use parallax_core::recurrence::Frequency;
use parallax_core::reminder::MAX_REMINDERS;
use parallax_core::validation::ValidationErrors;
use parallax_service::incidents::IncidentFilter;

use crate::http::api::body_check::{BodyRules, SET_BY_SERVICE};
use crate::http::api::query_params;
use crate::http::body_fields::{BodyFields, FieldSpec, field};

/// Validation rules of a new incident.
pub(in crate::http::api) const NEW_RULES: BodyRules = BodyRules {
    hints: &[
        ("body", "send it as message"),
        ("text", "send it as message"),
        ("name", "send it as title"),
        ("updates", "a new incident has one update, its message"),
        ("postmortem", "PATCH /api/v1/pages/{pageId}/incidents/{incidentId} sets it"),
    ],
    other_routes: &[],
    default_rule: "",
    echoes: &["repeat", "monitors", "remind"],
    volatile: &["id", "automatic"],
};

/// Validation rules of an update.
pub(in crate::http::api) const UPDATE_RULES: BodyRules = BodyRules {
    hints: &[
        ("body", "send it as message"),
        ("text", "send it as message"),
        ("title", INCIDENT_ALONE),
        ("impact", INCIDENT_ALONE),
        ("monitors", INCIDENT_ALONE),
        ("monitorIds", INCIDENT_ALONE),
        ("endsAt", INCIDENT_ALONE),
        ("postmortem", INCIDENT_ALONE),
        ("resolvedAt", "an update with the status resolved sets it"),
    ],
    other_routes: &[],
    default_rule: "",
    echoes: &[],
    volatile: &["id"],
};

const INCIDENT_ALONE: &str = "PATCH /api/v1/pages/{pageId}/incidents/{incidentId} changes it";

/// Returns the validation rules for changing an incident or a maintenance window.
pub(in crate::http::api) const fn change_rules(kind: IncidentKind) -> &'static BodyRules {
    match kind {
        IncidentKind::Incident => &INCIDENT_RULES,
        IncidentKind::Maintenance => &WINDOW_RULES,
    }
}

const INCIDENT_RULES: BodyRules = BodyRules {
    hints: HINTS,
    other_routes: &[
        ("status", UPDATE),
        ("resolvedAt", UPDATE),
        ("updates", UPDATE),
        ("kind", "can't be changed after creation"),
        ("startedAt", "can't be changed: it is set when an incident is opened"),
        ("automatic", "can't be changed: posting an update makes it false"),
    ],
    default_rule: SET_BY_SERVICE,
    echoes: &["repeat", "monitors", "remind"],
    volatile: &["stoppedAt"],
};

const WINDOW_RULES: BodyRules = BodyRules {
    hints: &[("startedAt", "send it as startsAt"), ("message", MESSAGE), ("body", MESSAGE), ("notify", MESSAGE)],
    ..INCIDENT_RULES
};

const HINTS: &[(&str, &str)] = &[("message", MESSAGE), ("body", MESSAGE), ("notify", MESSAGE)];
const MESSAGE: &str = "POST /api/v1/pages/{pageId}/incidents/{incidentId}/updates posts an update";
const UPDATE: &str = "can't be changed here: POST /api/v1/pages/{pageId}/incidents/{incidentId}/updates changes it";

/// Reads the fields of a new incident or maintenance window as sent. Unknown fields are ignored, and later also
/// those of the other kind.
pub(in crate::http) fn read_new(mut body: impl BodyFields) -> IncidentEdit {
    IncidentEdit {
        kind: body.text(
            field("kind", "Incident or maintenance. It can't be changed later.")
                .one_of(IncidentKind::ALL.map(IncidentKind::name))
                .default(IncidentKind::Incident.name())
                .nullable(),
        ),
        status: body.text(
            field("status", "incident: initial status. Default: investigating.")
                .one_of(IncidentStatus::OF_NEW.map(IncidentStatus::name))
                .nullable(),
        ),
        message: body.text(field("message", "First update, in Markdown.").length(0, MAX_MESSAGE).nullable()),
        started_at: body.text(field("startedAt", "incident: start time. Default: now.").date_time().nullable()),
        resolved_at: body.text(
            field("resolvedAt", "incident: end time, for one that is already over; notifies nobody.")
                .date_time()
                .nullable(),
        ),
        notify: body.boolean(notify()),
        timezone: body.text(
            field(
                "timezone",
                "IANA zone of times without an offset. Repeating maintenance also keeps its \
                 local time in this zone. Default: UTC.",
            )
            .nullable(),
        ),
        title: body.text(title("Title.").required()),
        impact: body.text(
            impact(
                "incident: severity. Default: partial. Anything above none sets the page's headline while it \
                 is open.",
            )
            .nullable(),
        ),
        starts_at: body
            .text(field("startsAt", "maintenance: start time, required. Null for incidents.").date_time().nullable()),
        ends_at: body.text(
            field("endsAt", "maintenance: end time, required; at most seven days after the start. Null for incidents.")
                .date_time()
                .nullable(),
        ),
        repeat: body.text(repeat("maintenance: repetition. Null: once.")),
        ..affected_and_reminders(&mut body)
    }
}

/// Reads the fields that change an incident or a maintenance window as sent. The kind never changes, and only
/// updates change the status and notify.
pub(in crate::http) fn read_change(mut body: impl BodyFields) -> IncidentEdit {
    IncidentEdit {
        title: body.text(title("Title.")),
        impact: body.text(impact("incident: severity. Anything above none sets the page's headline while it is open.")),
        starts_at: body.text(field("startsAt", "maintenance: start time. Null for incidents.").date_time().nullable()),
        ends_at: body.text(
            field("endsAt", "maintenance: end time; at most seven days after the start. Null for incidents.")
                .date_time()
                .nullable(),
        ),
        timezone: body.text(field("timezone", "IANA zone of times without an offset.").nullable()),
        repeat: body.text(repeat(
            "maintenance: null stops the repeating entry this window was planned from; windows already planned \
             stay.",
        )),
        postmortem: body
            .text(field("postmortem", "Post-mortem, in Markdown. Null clears.").length(0, MAX_POSTMORTEM).nullable()),
        ..affected_and_reminders(&mut body)
    }
}

fn affected_and_reminders(mut body: impl BodyFields) -> IncidentEdit {
    IncidentEdit {
        monitor_ids: body.ids(field("monitorIds", "Affected monitors, by id.").nullable(), MAX_AFFECTED),
        monitors: body.affected_monitors(
            field("monitors", "Affected monitors, each with an optional impact; added to `monitorIds`.").nullable(),
            MAX_AFFECTED,
        ),
        remind: body.strings(
            field("remind", "Reminder times: entries like 15m, 1h or 2d, from 1m to 30d.")
                .max_items(MAX_REMINDERS)
                .nullable()
                .example(vec!["1h", "1d"]),
        ),
        ..IncidentEdit::default()
    }
}

fn title(about: &'static str) -> FieldSpec {
    field("title", about).length(1, MAX_TITLE).example("Slow checkout")
}

fn notify() -> FieldSpec {
    field("notify", "Notify subscribers.").default(true).nullable()
}

fn impact(about: &'static str) -> FieldSpec {
    field("impact", about).one_of(Impact::ALL.map(Impact::name))
}

fn repeat(about: &'static str) -> FieldSpec {
    field("repeat", about).one_of(Frequency::ALL.map(Frequency::name)).nullable()
}

/// Reads the fields of an update as sent.
pub(in crate::http) fn read_update(mut body: impl BodyFields) -> UpdatePost {
    let statuses =
        IncidentStatus::OF_INCIDENT.into_iter().chain(IncidentStatus::OF_MAINTENANCE).map(IncidentStatus::name);
    UpdatePost {
        status: body.text(
            field("status", "New status; resolved closes an incident, completed ends maintenance now.")
                .one_of(statuses)
                .nullable(),
        ),
        message: body.text(field("message", "Text, in Markdown.").length(0, MAX_MESSAGE).nullable()),
        notify: body.boolean(notify()),
    }
}

/// Reads the query of the list.
pub(super) fn read_query(text: &str) -> Result<IncidentFilter, ValidationErrors> {
    let open = query_params::flag(text, "open")?.unwrap_or(false);
    let rule = "must be the id of an incident of this page";
    let before = query_params::value(text, "before", rule, |id| id.parse::<IncidentId>().ok())?;
    Ok(IncidentFilter { open, before, limit: query_params::limit(text)?, ..IncidentFilter::default() })
}
