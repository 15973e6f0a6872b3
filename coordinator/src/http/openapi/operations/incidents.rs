//! Incidents, maintenance and deploy markers, as the description tells of them.

use ::http::Method;
use serde_json::json;

use crate::http::api::deploys::{self, DeployDocument};
use crate::http::api::incidents::{body, view::IncidentDocument};
use crate::http::openapi::examples;
use crate::http::openapi::operation::{LIMIT, Operation, limit};

const TAG: &str = "Incidents";
const ALL: &str = "/pages/{pageId}/incidents";
const ONE: &str = "/pages/{pageId}/incidents/{incidentId}";
const DEPLOYS: &str = "Deploys";

pub(super) fn operations() -> Vec<Operation> {
    vec![
        Operation::new("listIncidents", Method::GET, ALL)
            .does(TAG, "List a page's incidents and maintenance")
            .about("Newest first by their start.")
            .query("open", "Only those that are not over.", json!({ "type": "boolean" }), true)
            .query(
                "before", "Id of the last one of the part before, for older ones.", json!({ "type": "string" }),
                examples::id("incidentId"),
            )
            .query("limit", LIMIT, limit(), 20)
            .gives::<Vec<IncidentDocument>>(
                200, "IncidentListResponse", "incidents",
                "The incidents: fewer than `limit` where they have more than about 1 MiB together.",
            )
            .beside(
                "nextBefore",
                json!({
                    "type": "string",
                    "description": "What `before` has to be for the next part; left out where there is none.",
                    "examples": [examples::id("incidentId")],
                }),
            ),
        Operation::new("createIncident", Method::POST, ALL)
            .does(TAG, "Open an incident, or plan maintenance")
            .about(
                "An incident of the past (with `resolvedAt`), and a window wholly in the past, are entered without a \
                 word to anybody. A page may have 200 open incidents and unfinished windows, and 50 entries that \
                 repeat: 422 with `plan_limit` for the next. An account keeps 1,000, 5,000 or 10,000 incidents and \
                 windows by its plan; the oldest make room once they are closed for 30 days, else 422. Times without an offset are local times in `timezone`: one that \
                 a change of clocks skips is the first moment after the gap, one that comes twice the first of the two.",
            )
            .note("One of the past (with resolvedAt, or a window wholly in the past) is told to nobody.")
            .tells()
            .takes("IncidentCreate", |description| body::read_new(description))
            .gives::<IncidentDocument>(201, "IncidentResponse", "incident", "The incident that was opened."),
        Operation::new("getIncident", Method::GET, ONE)
            .does(TAG, "Show an incident")
            .about("With its updates, newest first.")
            .gives::<IncidentDocument>(200, "IncidentResponse", "incident", "The incident."),
        Operation::new("updateIncident", Method::PATCH, ONE)
            .does(TAG, "Change an incident")
            .about(
                "Posts nothing and mails nobody: that is what updates are for. But a maintenance window whose end is moved \
                 into the past is over, and its end is announced.",
            )
            .takes("IncidentUpdate", |description| body::read_change(description))
            .gives::<IncidentDocument>(200, "IncidentResponse", "incident", "The incident after the change."),
        Operation::new("deleteIncident", Method::DELETE, ONE)
            .does(TAG, "Delete an incident, or one window")
            .about("Of maintenance that repeats, this window alone. It can't be undone.")
            .gives_nothing("It is gone."),
        Operation::new("postUpdate", Method::POST, "/pages/{pageId}/incidents/{incidentId}/updates")
            .does(TAG, "Post an update of an incident")
            .about("An automatic incident becomes manual by it: it no longer resolves itself.")
            .tells()
            .takes("UpdateCreate", |description| body::read_update(description))
            .gives::<IncidentDocument>(201, "IncidentResponse", "incident", "The incident with the update."),
        Operation::new("listDeploys", Method::GET, "/pages/{pageId}/deploys")
            .does(DEPLOYS, "List a page's deploy markers")
            .about("The last 50, newest first.")
            .gives::<Vec<DeployDocument>>(200, "DeployListResponse", "deploys", "The markers."),
        Operation::new("createDeploy", Method::POST, "/pages/{pageId}/deploys")
            .does(DEPLOYS, "Mark a deploy")
            .about(
                "Drawn on the response-time chart, and on the public page where it shows deploys. A page keeps its \
                 newest 1,000: the oldest goes, and one that is older than all of them is refused with 422.",
            )
            .note("Drawn on the response-time chart.")
            .takes("DeployCreate", |description| deploys::read(description))
            .gives::<DeployDocument>(201, "DeployResponse", "deploy", "The marker that was made."),
        Operation::new("deleteDeploy", Method::DELETE, "/pages/{pageId}/deploys/{deployId}")
            .does(DEPLOYS, "Delete a deploy marker")
            .about("It can't be undone.")
            .gives_nothing("It is gone."),
    ]
}
