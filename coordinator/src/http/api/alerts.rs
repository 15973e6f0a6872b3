//! A page's alert settings: show, edit.

use std::sync::Arc;

use ::http::StatusCode;
use parallax_core::telling::{REPEAT, Telling, TellingEdit};
use schemars::JsonSchema;
use serde::Serialize;

use super::sent::{self, Rules, Sent};
use super::{done, warned, wrapped};
use crate::http::Context;
use crate::http::fields::{Fields, field};
use crate::http::reply::Reply;
use crate::http::route::{Answer, Call};
use crate::service::Caller;
use crate::service::once::Once;

/// `GET /api/v1/pages/{page}/alerts`
pub(in crate::http) async fn show(context: Arc<Context>, call: Call<Caller>) -> Answer {
    let telling = context.service.telling(&call.caller, call.page()?)?;
    Ok(Reply::written(StatusCode::OK, wrapped("alerts", &document(&telling))))
}

/// `PATCH /api/v1/pages/{page}/alerts`
pub(in crate::http) async fn edit(context: Arc<Context>, mut call: Call<Caller>) -> Answer {
    let page = call.page()?;
    let before = sent::shown(&document(&context.service.telling(&call.caller, page)?));
    let (mut object, ticket) = call.object().await?;
    let Sent { edit, refused, warnings } =
        sent::read_change(&mut object, before.as_ref(), &RULES, |body| read(body));
    let edit = TellingEdit { refused, ..edit };
    let answer = |telling: &Telling| warned("alerts", &document(telling), &warnings);
    let once = Once::new(ticket, &answer);
    let changed = context.service.edit_telling(&call.caller, page, &edit, &once).await?;
    Ok(done(StatusCode::OK, changed, answer))
}

/// Validation rules of the body.
const RULES: Rules = Rules {
    hints: &[("repeat", "send it as repeatMinutes"), ("repeatSeconds", "send it as repeatMinutes")],
    elsewhere: &[],
    other: "can't be changed: the service sets it",
    echoes: &[],
    measured: &[],
};

/// Reads the fields as sent; others are ignored.
pub(in crate::http) fn read(mut body: impl Fields) -> TellingEdit {
    TellingEdit {
        repeat_minutes: body.whole(
            field("repeatMinutes", "Minutes between repeated alerts during an outage. Null: one alert.")
                .from(*REPEAT.start(), *REPEAT.end())
                .nullable()
                .example(30),
        ),
        automatic_incidents: body.flag(
            field(
                "automaticIncidents",
                "Open an incident automatically when a monitor goes down. Null: true.",
            )
            .nullable(),
        ),
        ..TellingEdit::default()
    }
}

/// Alert settings of a page.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "AlertSettings")]
pub(in crate::http) struct AlertsDocument {
    /// Minutes between repeated alerts during an outage; null means one alert.
    repeat_minutes: Option<u16>,
    /// True if an incident opens automatically when a monitor goes down.
    automatic_incidents: bool,
}

fn document(telling: &Telling) -> AlertsDocument {
    let Telling { repeat_minutes, automatic_incidents } = *telling;
    AlertsDocument { repeat_minutes, automatic_incidents }
}
