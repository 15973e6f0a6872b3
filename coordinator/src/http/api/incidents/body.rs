//! The bodies that open or change an incident or a window, or post an update; and the query of the list.

use parallax_core::id::IncidentId;
use parallax_core::incident::edit::{IncidentEdit, MAX_MESSAGE, MAX_POSTMORTEM, MAX_TITLE};
use parallax_core::incident::{Impact, Kind, MAX_AFFECTED, Progress, UpdatePost};
use parallax_core::recurrence::Every;
use parallax_core::refusal::Refusals;
use parallax_core::remind::MAX_REMINDERS;

use crate::http::api::query;
use crate::http::fields::{Fields, field};
use crate::service::incidents::Wanted;

/// The fields as they were sent; others are ignored, and so are later those of the other kind.
pub(in crate::http) fn read(mut body: impl Fields) -> IncidentEdit {
    IncidentEdit {
        kind: body.text(
            field("kind", "Whether it is an incident or maintenance. It can't change later.")
                .words(Kind::ALL.map(Kind::name))
                .default(Kind::Incident.name()),
        ),
        title: body.text(
            field("title", "Required for a new one.").characters(1, MAX_TITLE).example("Slow checkout"),
        ),
        status: body.text(
            field("status", "incident: its status at first; investigating unless given.")
                .words(Progress::OF_NEW.map(Progress::name)),
        ),
        impact: body.text(
            field(
                "impact",
                "How much is affected: one above none sets the page's headline while it is open.",
            )
            .words(Impact::ALL.map(Impact::name)),
        ),
        message: body
            .text(field("message", "The first update, in Markdown.").characters(0, MAX_MESSAGE).nullable()),
        starts_at: body.text(field("startsAt", "maintenance: when it starts, required.").moment()),
        ends_at: body.text(
            field("endsAt", "maintenance: when it ends, required; at most seven days after its start.")
                .moment(),
        ),
        monitor_ids: body
            .texts(field("monitorIds", "Affected monitors, by id.").most(MAX_AFFECTED).nullable()),
        monitors: body.affected(
            field(
                "monitors",
                "Affected monitors, each maybe with an impact of its own; beside `monitorIds`.",
            )
            .most(MAX_AFFECTED)
            .nullable(),
        ),
        started_at: body
            .text(field("startedAt", "incident: when it began; now unless given.").moment().nullable()),
        resolved_at: body.text(
            field("resolvedAt", "incident: when it was over, for one that ended earlier: nobody is told.")
                .moment()
                .nullable(),
        ),
        notify: body.flag(field("notify", "Whether subscribers are told.").default(true)),
        remind: body.texts(
            field("remind", "When to remind: entries like 15m, 1h or 2d, from 1m to 30d.")
                .most(MAX_REMINDERS)
                .nullable()
                .example(vec!["1h", "1d"]),
        ),
        repeat: body.text(
            field("repeat", "maintenance: how often it repeats; null for once, and to stop it.")
                .words(Every::ALL.map(Every::name))
                .nullable(),
        ),
        timezone: body.text(
            field(
                "timezone",
                "maintenance that repeats: the IANA zone whose local time it keeps; UTC unless given.",
            )
            .nullable(),
        ),
        postmortem: body.text(
            field("postmortem", "The post-mortem, in Markdown. Null clears.")
                .characters(0, MAX_POSTMORTEM)
                .nullable(),
        ),
    }
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
        notify: body.flag(field("notify", "Whether subscribers are told.").default(true)),
    }
}

/// What of the list is wanted.
pub(super) fn read_query(text: &str) -> Result<Wanted, Refusals> {
    let flag = |text: &str| match text {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    };
    let open = query::value(text, "open", "must be true or false", flag)?.unwrap_or(false);
    let rule = "must be the id of an incident of this page";
    let before = query::value(text, "before", rule, |id| id.parse::<IncidentId>().ok())?;
    Ok(Wanted { open, before, limit: query::limit(text)? })
}
