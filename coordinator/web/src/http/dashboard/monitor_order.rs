//! Order of a page's monitors: moved one by one or by number, and saved by one button.

use std::collections::BTreeSet;
use std::sync::Arc;

use ::http::{Method, StatusCode};
use futures_util::FutureExt;
use parallax_core::id::{MonitorId, PageId};
use parallax_core::monitor::order_edit::MonitorOrderEdit;
use parallax_core::patch::PatchField;
use parallax_core::role::Permission;
use parallax_service::idempotency::IdempotentRequest;
use parallax_service::monitors::MonitorWithState;
use parallax_service::monitors::order::MonitorOrder;
use sha2::{Digest, Sha256};

use super::forms::{Form, FormRefusal, LOADED, ONCE, SubmittedForm, new_key, result_path};
use super::frame::frame;
use super::page_screen::reply_with;
use super::{SignedIn, see_other};
use crate::http::HttpContext;
use crate::http::error::HandlerResult;
use crate::http::route::{HttpRoute, signed_in_route};
use crate::http::routed_request::RoutedRequest;
use crate::views::dashboard::monitor_order::{OrderRow, OrderScreen};
use crate::views::dashboard::{Section, Toast};

/// Bytes of the fingerprint of an order.
const FINGERPRINT: usize = 8;
/// Reason for a conflict.
const CHANGED: &str = "The monitors or their order changed meanwhile. Check the order and save it again.";

/// Routes of this screen. `monitor_list.rs` shows it at the address of the list.
pub(super) fn rows() -> Vec<(&'static str, Vec<(Method, HttpRoute)>)> {
    vec![(
        "/app/pages/{page}/monitors/order",
        vec![(Method::POST, signed_in_route(|context, call| submit(context, call).boxed()))],
    )]
}

/// `GET /app/pages/{page}/monitors?order=edit`
pub(super) async fn show(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let page = call.page_id()?;
    let monitors = context.service.monitors.list(&call.caller.caller, page).await?;
    call.caller.caller.require(Permission::Edit)?;
    let ids = ids_of(&monitors);
    let drawn = DrawnOrder { loaded: fingerprint(&ids), once: new_key(), ids, problem: None };
    draw(&context, &mut call, (page, &monitors), drawn).await
}

/// `POST /app/pages/{page}/monitors/order`: moves a monitor on the form, or saves the order.
async fn submit(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let page = call.page_id()?;
    let SubmittedForm { form, idempotency_key } = SubmittedForm::read(&mut call).await?;
    let caller = call.caller.caller.clone();
    let monitors = context.service.monitors.list(&caller, page).await?;
    caller.require(Permission::Edit)?;
    let present = ids_of(&monitors);
    let sent: Vec<MonitorId> = form.all("id").filter_map(|id| id.parse().ok()).collect();
    let loaded = fingerprint(&present);
    let is_replay = match &idempotency_key {
        Some(key) => context.service.is_replay(key)?,
        None => false,
    };
    let mut drawn = DrawnOrder { loaded, once: form.text(ONCE).to_owned(), ids: sent.clone(), problem: None };
    if !is_replay && form.text(LOADED) != drawn.loaded {
        drawn.ids = merged(&sent, &present);
        drawn.problem = Some((CHANGED.to_owned(), StatusCode::CONFLICT));
        drawn.once = new_key();
        return draw(&context, &mut call, (page, &monitors), drawn).await;
    }
    let Some(mut order) = arranged(&sent, |at| form.text(&format!("at.{at}")).trim().parse().ok()) else {
        let problem = format!("Each position must be a whole number from 1 to {}.", sent.len());
        drawn.problem = Some((problem, StatusCode::BAD_REQUEST));
        return draw(&context, &mut call, (page, &monitors), drawn).await;
    };
    if form.has("up") || form.has("down") {
        move_by_one(&mut order, &form);
        drawn.ids = order;
        return draw(&context, &mut call, (page, &monitors), drawn).await;
    }
    let edit = MonitorOrderEdit { monitor_ids: PatchField::Value(order.iter().map(ToString::to_string).collect()) };
    let path = |order: &MonitorOrder| {
        Toast::address(&format!("/app/pages/{page}/monitors"), "monitors-reordered", order.ids.len())
    };
    let answer = |order: &MonitorOrder| path(order).into_bytes();
    let once = IdempotentRequest::new(idempotency_key, &answer);
    match context.service.monitors.reorder(&caller, page, &edit, &once).await {
        Ok(outcome) => Ok(see_other(&result_path(outcome, path))),
        Err(error) => {
            // A form that names other monitors than the page has: one came or went since it was compared.
            FormRefusal::of(error)?;
            drawn.ids = merged(&order, &present);
            drawn.problem = Some((CHANGED.to_owned(), StatusCode::CONFLICT));
            draw(&context, &mut call, (page, &monitors), drawn).await
        }
    }
}

/// The order on the form.
struct DrawnOrder {
    ids: Vec<MonitorId>,
    /// Fingerprint of the order that is stored.
    loaded: String,
    once: String,
    problem: Option<(String, StatusCode)>,
}

async fn draw(
    context: &HttpContext,
    call: &mut RoutedRequest<SignedIn>,
    (page, monitors): (PageId, &[MonitorWithState]),
    drawn: DrawnOrder,
) -> HandlerResult {
    let frame = frame(context, call, Some(page), Section::Monitors).await?;
    let find = |id: &MonitorId| monitors.iter().find(|it| it.monitor.id == *id);
    let row = |it: &MonitorWithState| OrderRow {
        id: it.monitor.id,
        name: it.monitor.name.clone(),
        group: it.monitor.group.clone().unwrap_or_default(),
    };
    let status = drawn.problem.as_ref().map_or(StatusCode::OK, |(_, status)| *status);
    let screen = OrderScreen {
        path: frame.path("monitors"),
        rows: drawn.ids.iter().filter_map(find).map(row).collect(),
        loaded: drawn.loaded,
        idempotency_key: drawn.once,
        problem: drawn.problem.map(|(text, _)| text),
        frame,
    };
    reply_with(&screen, status)
}

fn ids_of(monitors: &[MonitorWithState]) -> Vec<MonitorId> {
    monitors.iter().map(|it| it.monitor.id).collect()
}

fn fingerprint(ids: &[MonitorId]) -> String {
    let mut digest = Sha256::new();
    ids.iter().for_each(|id| digest.update(id.to_u128().to_be_bytes()));
    hex::encode(digest.finalize().iter().copied().take(FINGERPRINT).collect::<Vec<u8>>())
}

/// The order as sent, without monitors that are gone, and with new ones at the end.
fn merged(sent: &[MonitorId], present: &[MonitorId]) -> Vec<MonitorId> {
    let (known, mut taken): (BTreeSet<_>, BTreeSet<_>) = (present.iter().collect(), BTreeSet::new());
    sent.iter().chain(present).filter(|id| known.contains(id) && taken.insert(**id)).copied().collect()
}

/// Puts each monitor whose number was changed to that position; the others keep their order. `None` for a number that
/// is no position.
fn arranged(sent: &[MonitorId], number: impl Fn(usize) -> Option<usize>) -> Option<Vec<MonitorId>> {
    let (mut order, mut moved) = (Vec::with_capacity(sent.len()), Vec::new());
    for (at, id) in (1..).zip(sent) {
        let number = number(at).filter(|number| (1..=sent.len()).contains(number))?;
        if number == at { order.push(*id) } else { moved.push((number, *id)) }
    }
    moved.sort_by_key(|(number, _)| *number);
    for (number, id) in moved {
        order.insert((number - 1).min(order.len()), id);
    }
    Some(order)
}

/// Moves the monitor of the pressed button up or down by one.
fn move_by_one(order: &mut [MonitorId], form: &Form) {
    let at = |name: &str| {
        let id: MonitorId = form.text(name).parse().ok()?;
        order.iter().position(|it| *it == id)
    };
    let upper = if form.has("up") { at("up").and_then(|at| at.checked_sub(1)) } else { at("down") };
    if let Some(upper) = upper.filter(|upper| upper + 1 < order.len()) {
        order.swap(upper, upper + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(numbers: &[u128]) -> Vec<MonitorId> {
        numbers.iter().map(|number| MonitorId::from_u128(*number)).collect()
    }

    #[test]
    fn a_changed_number_moves_its_monitor_alone() {
        let sent = ids(&[1, 2, 3, 4]);
        for (numbers, expected) in [
            ([1, 2, 3, 4], Some([1, 2, 3, 4])),
            ([4, 2, 3, 4], Some([2, 3, 4, 1])),
            ([1, 2, 3, 1], Some([4, 1, 2, 3])),
            ([4, 3, 2, 1], Some([4, 3, 2, 1])),
            ([2, 2, 3, 4], Some([2, 1, 3, 4])),
            ([1, 2, 3, 5], None),
            ([0, 2, 3, 4], None),
        ] {
            let order = arranged(&sent, |at| numbers.get(at - 1).copied());
            assert_eq!(order, expected.map(|it: [u128; 4]| ids(&it)), "{numbers:?}");
        }
        assert_eq!(arranged(&sent, |_| None), None, "no number");
    }

    #[test]
    fn the_first_stays_first_and_the_last_last() {
        for (button, id, expected) in
            [("up", 2, [2, 1, 3]), ("up", 1, [1, 2, 3]), ("down", 2, [1, 3, 2]), ("down", 3, [1, 2, 3])]
        {
            let mut order = ids(&[1, 2, 3]);
            move_by_one(&mut order, &Form::of([(button, MonitorId::from_u128(id).to_string())]));
            assert_eq!(order, ids(&expected), "{button} {id}");
        }
    }

    #[test]
    fn an_order_is_merged_with_what_came_and_went() {
        assert_eq!(merged(&ids(&[3, 1, 2, 3]), &ids(&[1, 3, 4])), ids(&[3, 1, 4]));
    }
}
