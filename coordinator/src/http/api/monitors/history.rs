//! History of a monitor: its checks, events and daily uptime; and checks on demand.

use std::sync::Arc;

use ::http::StatusCode;
use chrono::NaiveDate;
use parallax_core::place::Region;
use parallax_core::time::Timestamp;

use super::seen;
use crate::http::Context;
use crate::http::api::{bare, query, wrapped};
use crate::http::reply::Reply;
use crate::http::route::{Answer, Call};
use crate::service::Caller;

/// `GET /api/v1/pages/{page}/monitors/{monitor}/checks`
pub(in crate::http) async fn checks(context: Arc<Context>, call: Call<Caller>) -> Answer {
    let (page, monitor) = (call.page()?, call.monitor()?);
    context.service.reaches_monitor(&call.caller, page, monitor)?;
    let limit = query::limit(&call.query)?;
    let after = query::value(&call.query, "cursor", "must be a cursor of this list", read_place)?;
    let part = context.service.checks(&call.caller, (page, monitor), after, limit).await?;
    let checks: Vec<_> = part.items.iter().map(|check| seen::check(check, &part.places)).collect();
    let next = part.next.map(|(due, region)| format!("{}-{}", due.as_millis(), region.index()));
    Ok(Reply::written(StatusCode::OK, bare(&seen::CheckList { checks, next_cursor: next })))
}

/// `GET /api/v1/pages/{page}/monitors/{monitor}/events`
pub(in crate::http) async fn events(context: Arc<Context>, call: Call<Caller>) -> Answer {
    let (page, monitor) = (call.page()?, call.monitor()?);
    context.service.reaches_monitor(&call.caller, page, monitor)?;
    let limit = query::limit(&call.query)?;
    let before =
        query::value(&call.query, "cursor", "must be a cursor of this list", |text| text.parse().ok())?;
    let part = context.service.events(&call.caller, (page, monitor), before, limit).await?;
    let events: Vec<_> = part.items.iter().filter_map(|event| seen::event(event, &part.places)).collect();
    let next = part.next.map(|seq| seq.to_string());
    Ok(Reply::written(StatusCode::OK, bare(&seen::EventList { events, next_cursor: next })))
}

/// `GET /api/v1/pages/{page}/monitors/{monitor}/uptime`
pub(in crate::http) async fn uptime(context: Arc<Context>, call: Call<Caller>) -> Answer {
    let (page, monitor) = (call.page()?, call.monitor()?);
    context.service.reaches_monitor(&call.caller, page, monitor)?;
    let date = |name| query::value(&call.query, name, "must be a date such as 2026-11-28", read_date);
    let (from, to) = (date("from")?, date("to")?);
    let days = context.service.days(&call.caller, (page, monitor), from, to).await?;
    let days: Vec<_> = days.iter().map(seen::day).collect();
    Ok(Reply::written(StatusCode::OK, wrapped("days", &days)))
}

/// `POST /api/v1/pages/{page}/monitors/{monitor}/check`
pub(in crate::http) async fn check_now(context: Arc<Context>, call: Call<Caller>) -> Answer {
    let looked = context.service.check_now(&call.caller, call.page()?, call.monitor()?).await?;
    let regions: Vec<_> =
        looked.sightings.iter().map(|sighting| seen::sighting(sighting, &looked.places)).collect();
    Ok(Reply::written(StatusCode::OK, wrapped("regions", &regions)))
}

fn read_place(text: &str) -> Option<(Timestamp, Region)> {
    let (due, region) = text.split_once('-')?;
    let due: u64 = due.parse().ok().filter(|due| *due < 1 << 48)?;
    let region = *Region::ALL.get(region.parse::<usize>().ok()?)?;
    Some((Timestamp::from_millis(i64::try_from(due).ok()?), region))
}

fn read_date(text: &str) -> Option<NaiveDate> {
    // Only one notation is accepted: four digits, two, two.
    (text.len() == 10).then(|| NaiveDate::parse_from_str(text, "%Y-%m-%d").ok())?
}
