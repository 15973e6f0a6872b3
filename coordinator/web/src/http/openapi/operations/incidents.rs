//! Operations of incidents, maintenance windows and deploy markers.

use ::http::Method;
use serde_json::json;

use crate::http::api::deploys::{self, DeployDocument};
use crate::http::api::incidents::{body, view::IncidentDocument};
use crate::http::openapi::examples;
use crate::http::openapi::operation::{ApiOperation, LIMIT_ABOUT, limit};

const TAG: &str = "Incidents";
const ALL: &str = "/pages/{pageId}/incidents";
const ONE: &str = "/pages/{pageId}/incidents/{incidentId}";
const DEPLOYS: &str = "Deploys";

pub(super) fn operations() -> Vec<ApiOperation> {
    vec![
        ApiOperation::new("listIncidents", Method::GET, ALL)
            .with_summary(TAG, "List a page's incidents and maintenance")
            .about("Newest start first.")
            .query("open", "Only open incidents and unfinished maintenance.", json!({ "type": "boolean" }), true)
            .query(
                "before",
                "Cursor: id of the last item of the previous page.",
                json!({ "type": "string" }),
                examples::id("incidentId"),
            )
            .query("limit", LIMIT_ABOUT, limit(), 20)
            .responds::<Vec<IncidentDocument>>(
                200,
                "IncidentListResponse",
                "incidents",
                "The incidents; fewer than `limit` if they would exceed about 1 MiB in total.",
            )
            .with_field(
                "nextBefore",
                json!({
                    "type": "string",
                    "description": "Value of `before` for the next page; left out on the last page.",
                    "examples": [examples::id("incidentId")],
                }),
            ),
        ApiOperation::new("createIncident", Method::POST, ALL)
            .with_summary(TAG, "Open an incident, or plan maintenance")
            .about(
                "Past incidents (with `resolvedAt`) and windows wholly in the past notify nobody. A page may have \
                 200 open incidents and unfinished windows, and 50 repeating entries; the next returns 422 with \
                 `plan_limit`. An account keeps 1,000, 5,000 or 10,000 incidents and windows, depending on its plan; \
                 the oldest are replaced once they have been closed for 30 days, else 422. Times without an offset \
                 are local times in `timezone`: a time skipped by a clock change means the first moment after the \
                 gap, a repeated one the first of the two.",
            )
            .tool_description("A past incident (with resolvedAt) or a window wholly in the past notifies nobody.")
            .notifies()
            .accepts("IncidentCreate", |description| body::read_new(description))
            .responds::<IncidentDocument>(201, "IncidentResponse", "incident", "The new incident."),
        ApiOperation::new("getIncident", Method::GET, ONE)
            .with_summary(TAG, "Show an incident")
            .about("Includes its updates, newest first.")
            .responds::<IncidentDocument>(200, "IncidentResponse", "incident", "The incident."),
        ApiOperation::new("updateIncident", Method::PATCH, ONE)
            .with_summary(TAG, "Change an incident")
            .about(
                "Posts nothing and mails nobody; post an update for that. But moving the end of a maintenance window \
                 into the past ends it, and its end is announced.",
            )
            .accepts("IncidentUpdate", |description| body::read_change(description))
            .responds::<IncidentDocument>(200, "IncidentResponse", "incident", "The incident after the change."),
        ApiOperation::new("deleteIncident", Method::DELETE, ONE)
            .with_summary(TAG, "Delete an incident, or one window")
            .about("Of repeating maintenance, deletes only this window. This can't be undone.")
            .responds_empty("Deleted."),
        ApiOperation::new("postUpdate", Method::POST, "/pages/{pageId}/incidents/{incidentId}/updates")
            .with_summary(TAG, "Post an incident update")
            .about("Makes an automatic incident manual: it no longer resolves itself.")
            .notifies()
            .accepts("UpdateCreate", |description| body::read_update(description))
            .responds::<IncidentDocument>(201, "IncidentResponse", "incident", "The incident with the update."),
        ApiOperation::new("listDeploys", Method::GET, "/pages/{pageId}/deploys")
            .with_summary(DEPLOYS, "List a page's deploy markers")
            .about("The last 50, newest first.")
            .responds::<Vec<DeployDocument>>(200, "DeployListResponse", "deploys", "The markers."),
        ApiOperation::new("createDeploy", Method::POST, "/pages/{pageId}/deploys")
            .with_summary(DEPLOYS, "Mark a deploy")
            .about(
                "Drawn on the response-time chart, and on the public page if it shows deploys. A page keeps its \
                 newest 1,000; the oldest is dropped, and a marker older than all of them returns 422.",
            )
            .tool_description("Drawn on the response-time chart.")
            .accepts("DeployCreate", |description| deploys::read(description))
            .responds::<DeployDocument>(201, "DeployResponse", "deploy", "The new marker."),
        ApiOperation::new("deleteDeploy", Method::DELETE, "/pages/{pageId}/deploys/{deployId}")
            .with_summary(DEPLOYS, "Delete a deploy marker")
            .about("This can't be undone.")
            .responds_empty("Deleted."),
    ]
}
