//! The bodies that open or change an incident or a window, or post an update; and the query of the list.

use parallax_core::id::IncidentId;
use parallax_core::incident::edit::{IncidentEdit, MAX_MESSAGE, MAX_POSTMORTEM, MAX_TITLE};
use parallax_core::incident::{Impact, Kind, MAX_AFFECTED, Progress, UpdatePost};
use parallax_core::recurrence::Every;
use parallax_core::refusal::Refusals;
use parallax_core::remind::MAX_REMINDERS;

use crate::http::api::query;
use crate::http::api::sent::Rules;
use crate::http::fields::{Field, Fields, field};
use crate::service::incidents::Wanted;

/// Rules that the body of a new incident is held against.
pub(in crate::http::api) const NEW: Rules = Rules {
    hints: &[
        ("body", "send it as message"),
        ("text", "send it as message"),
        ("name", "send it as title"),
        ("updates", "an incident begins with one update, its message"),
        ("postmortem", "PATCH /api/v1/pages/{pageId}/incidents/{incidentId} sets it"),
    ],
    elsewhere: &[],
    other: "",
    echoes: &["repeat", "monitors", "remind"],
    measured: &["id", "automatic"],
};

/// Rules that the body of an update is held against.
pub(in crate::http::api) const POSTED: Rules = Rules {
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
    elsewhere: &[],
    other: "",
    echoes: &[],
    measured: &["id"],
};

const INCIDENT_ALONE: &str = "PATCH /api/v1/pages/{pageId}/incidents/{incidentId} changes it";

/// Rules that the body of an incident's change is held against, and of a window's.
pub(in crate::http::api) const fn rules(kind: Kind) -> &'static Rules {
    match kind {
        Kind::Incident => &INCIDENT,
        Kind::Maintenance => &WINDOW,
    }
}

const INCIDENT: Rules = Rules {
    hints: HINTS,
    elsewhere: &[
        ("status", UPDATE),
        ("resolvedAt", UPDATE),
        ("updates", UPDATE),
        ("kind", "can't be changed after creation"),
        ("startedAt", "can't be changed: it is said when an incident is opened"),
        ("automatic", "can't be changed: an update of a person makes it false"),
    ],
    other: "can't be changed: the service sets it",
    echoes: &["repeat", "monitors", "remind"],
    measured: &["stoppedAt"],
};

const WINDOW: Rules = Rules {
    hints: &[
        ("startedAt", "send it as startsAt"),
        ("message", MESSAGE),
        ("body", MESSAGE),
        ("notify", MESSAGE),
    ],
    ..INCIDENT
};

const HINTS: &[(&str, &str)] = &[("message", MESSAGE), ("body", MESSAGE), ("notify", MESSAGE)];
const MESSAGE: &str = "POST /api/v1/pages/{pageId}/incidents/{incidentId}/updates posts an update";
const UPDATE: &str =
    "can't be changed here: POST /api/v1/pages/{pageId}/incidents/{incidentId}/updates changes it";

/// The fields that open an incident or plan a window, as they were sent; others are ignored, and those of the other kind
/// count for nothing later.
pub(in crate::http) fn read_new(mut body: impl Fields) -> IncidentEdit {
    IncidentEdit {
        kind: body.text(
            field("kind", "Whether it is an incident or maintenance. It can't change later.")
                .words(Kind::ALL.map(Kind::name))
                .default(Kind::Incident.name())
                .nullable(),
        ),
        status: body.text(
            field("status", "incident: its status at first; investigating unless given.")
                .words(Progress::OF_NEW.map(Progress::name))
                .nullable(),
        ),
        message: body
            .text(field("message", "The first update, in Markdown.").characters(0, MAX_MESSAGE).nullable()),
        started_at: body
            .text(field("startedAt", "incident: when it began; now unless given.").moment().nullable()),
        resolved_at: body.text(
            field("resolvedAt", "incident: when it was over, for one that ended earlier: nobody is told.")
                .moment()
                .nullable(),
        ),
        notify: body.flag(field("notify", "Whether subscribers are told.").default(true).nullable()),
        timezone: body.text(
            field(
                "timezone",
                "The IANA zone of times that are sent without an offset. maintenance that repeats: also the zone whose \
                 local time it keeps; UTC unless given.",
            )
            .nullable(),
        ),
        title: body.text(title("What it is called.").required()),
        impact: body.text(
            impact(
                "incident: how much is affected, partial unless given. One above none sets the page's headline while it \
                 is open.",
            )
            .nullable(),
        ),
        starts_at: body.text(
            field("startsAt", "maintenance: when it starts, required. Null is for incidents.")
                .moment()
                .nullable(),
        ),
        ends_at: body.text(
            field(
                "endsAt",
                "maintenance: when it ends, required; at most seven days after its start. Null is for incidents.",
            )
            .moment()
            .nullable(),
        ),
        repeat: body.text(repeat("maintenance: how often it repeats. Null: once.")),
        ..affected_and_reminders(&mut body)
    }
}

/// The fields that change an incident or a window, as they were sent: one that was planned or opened keeps its kind, and
/// updates alone change its status and say something.
pub(in crate::http) fn read_change(mut body: impl Fields) -> IncidentEdit {
    IncidentEdit {
        title: body.text(title("What it is called.")),
        impact: body.text(impact(
            "incident: how much is affected. One above none sets the page's headline while it is open.",
        )),
        starts_at: body.text(
            field("startsAt", "maintenance: when it starts. Null is for incidents.").moment().nullable(),
        ),
        ends_at: body.text(
            field(
                "endsAt",
                "maintenance: when it ends; at most seven days after its start. Null is for incidents.",
            )
            .moment()
            .nullable(),
        ),
        timezone: body.text(
            field("timezone", "The IANA zone of times that are sent without an offset.").nullable(),
        ),
        repeat: body.text(repeat(
            "maintenance: null stops the repeating entry that this window was planned from; windows that are planned \
             already stay.",
        )),
        postmortem: body.text(
            field("postmortem", "The post-mortem, in Markdown. Null clears.")
                .characters(0, MAX_POSTMORTEM)
                .nullable(),
        ),
        ..affected_and_reminders(&mut body)
    }
}

fn affected_and_reminders(mut body: impl Fields) -> IncidentEdit {
    IncidentEdit {
        monitor_ids: body.ids(field("monitorIds", "Affected monitors, by id.").nullable(), MAX_AFFECTED),
        monitors: body.affected(
            field(
                "monitors",
                "Affected monitors, each maybe with an impact of its own; beside `monitorIds`.",
            )
            .nullable(),
            MAX_AFFECTED,
        ),
        remind: body.texts(
            field("remind", "When to remind: entries like 15m, 1h or 2d, from 1m to 30d.")
                .most(MAX_REMINDERS)
                .nullable()
                .example(vec!["1h", "1d"]),
        ),
        ..IncidentEdit::default()
    }
}

fn title(about: &'static str) -> Field {
    field("title", about).characters(1, MAX_TITLE).example("Slow checkout")
}

fn impact(about: &'static str) -> Field {
    field("impact", about).words(Impact::ALL.map(Impact::name))
}

fn repeat(about: &'static str) -> Field {
    field("repeat", about).words(Every::ALL.map(Every::name)).nullable()
}

/// The fields of an update as they were sent.
pub(in crate::http) fn read_update(mut body: impl Fields) -> UpdatePost {
    let statuses = Progress::OF_INCIDENT.into_iter().chain(Progress::OF_MAINTENANCE).map(Progress::name);
    UpdatePost {
        status: body.text(
            field("status", "The new status; resolved closes an incident, completed ends maintenance now.")
                .words(statuses)
                .nullable(),
        ),
        message: body.text(field("message", "The text, in Markdown.").characters(0, MAX_MESSAGE).nullable()),
        notify: body.flag(field("notify", "Whether subscribers are told.").default(true).nullable()),
    }
}

/// What of the list is wanted.
pub(super) fn read_query(text: &str) -> Result<Wanted, Refusals> {
    let open = query::flag(text, "open")?.unwrap_or(false);
    let rule = "must be the id of an incident of this page";
    let before = query::value(text, "before", rule, |id| id.parse::<IncidentId>().ok())?;
    Ok(Wanted { open, before, limit: query::limit(text)? })
}
