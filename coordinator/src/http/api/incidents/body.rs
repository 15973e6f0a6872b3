//! The bodies that open or change an incident or a window, or post an update; and the query of the list.

use parallax_core::id::IncidentId;
use parallax_core::incident::UpdatePost;
use parallax_core::incident::edit::IncidentEdit;
use parallax_core::refusal::Refusals;

use crate::http::json::Object;
use crate::http::patch;
use crate::service::incidents::Wanted;

/// How many a list holds, where nothing else is asked for.
const LIMIT: usize = 50;
/// How many it may hold.
const MAX_LIMIT: usize = 200;

/// The fields as they were sent; others are ignored, and so are later those of the other kind.
pub(super) fn read(body: &Object) -> IncidentEdit {
    IncidentEdit {
        kind: patch::text(body, "kind"),
        title: patch::text(body, "title"),
        status: patch::text(body, "status"),
        impact: patch::text(body, "impact"),
        message: patch::text(body, "message"),
        starts_at: patch::text(body, "startsAt"),
        ends_at: patch::text(body, "endsAt"),
        monitor_ids: patch::texts(body, "monitorIds"),
        monitors: patch::affected(body, "monitors"),
        started_at: patch::text(body, "startedAt"),
        resolved_at: patch::text(body, "resolvedAt"),
        notify: patch::flag(body, "notify"),
        remind: patch::texts(body, "remind"),
        repeat: patch::text(body, "repeat"),
        timezone: patch::text(body, "timezone"),
        postmortem: patch::text(body, "postmortem"),
    }
}

/// The fields of an update as they were sent.
pub(super) fn read_update(body: &Object) -> UpdatePost {
    UpdatePost {
        status: patch::text(body, "status"),
        message: patch::text(body, "message"),
        notify: patch::flag(body, "notify"),
    }
}

/// What of the list is wanted. Other names in the query are ignored; of a name that stands twice the first counts.
pub(super) fn read_query(query: &str) -> Result<Wanted, Refusals> {
    let mut faults = Refusals::none();
    let value = |wanted: &str| {
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.find(|(name, _)| *name == wanted).map(|(_, value)| value.to_owned())
    };
    let (open, limit, before) = (value("open"), value("limit"), value("before"));
    let open = match open.as_deref() {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(_) => Err("must be true or false".to_owned()),
    };
    let open = faults.take("open", open);
    let limit = limit.map_or(Ok(LIMIT), |limit| {
        let number = limit.parse().ok().filter(|limit| (1..=MAX_LIMIT).contains(limit));
        number.ok_or_else(|| format!("must be a whole number from 1 to {MAX_LIMIT}"))
    });
    let limit = faults.take("limit", limit);
    let before = before.map(|id| {
        id.parse::<IncidentId>().map_err(|_| "must be the id of an incident of this page".to_owned())
    });
    let before = faults.take("before", before.transpose());
    match (open, limit, before) {
        (Some(open), Some(limit), Some(before)) => Ok(Wanted { open, before, limit }),
        (_, _, _) => Err(faults),
    }
}
