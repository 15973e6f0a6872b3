//! Order of a page's monitors: moved one by one or by number, and saved by one button.

use std::collections::{BTreeMap, BTreeSet};
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
use parallax_service::undo_offer::UndoOffer;
use sha2::{Digest, Sha256};

use super::forms::{Form, FormRefusal, FormStatus, LOADED, ONCE, SubmittedForm, new_key, result_path};
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
/// Characters of a typed number that are shown again, at most.
const MAX_SHOWN: usize = 20;

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
    let drawn = DrawnOrder { ids: ids_of(&monitors), typed: TypedNumbers::new(), once: new_key(), problem: None };
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
    let is_replay = match &idempotency_key {
        Some(key) => context.service.is_replay(key)?,
        None => false,
    };
    let once = form.text(ONCE).to_owned();
    let arranged = arranged(&sent, &form);
    if !is_replay && form.text(LOADED) != fingerprint(&present) {
        let (ids, typed) = match arranged {
            Some(order) => (order, TypedNumbers::new()),
            None => (sent.clone(), typed_numbers(&sent, &form)),
        };
        let by = context.service.monitors.order_editor(&caller, page)?;
        let drawn = DrawnOrder { ids: merged(&ids, &present), typed, ..DrawnOrder::changed(&sent, &monitors, by) };
        return draw(&context, &mut call, (page, &monitors), drawn).await;
    }
    let Some(mut order) = arranged else {
        let problem = format!("Each position must be a whole number from 1 to {}.", sent.len());
        let problem = Some((problem, StatusCode::BAD_REQUEST.into()));
        let drawn = DrawnOrder { typed: typed_numbers(&sent, &form), ids: sent, once, problem };
        return draw(&context, &mut call, (page, &monitors), drawn).await;
    };
    if form.has("up") || form.has("down") {
        move_by_one(&mut order, &form);
        let drawn = DrawnOrder { ids: order, typed: TypedNumbers::new(), once, problem: None };
        return draw(&context, &mut call, (page, &monitors), drawn).await;
    }
    let edit = MonitorOrderEdit { monitor_ids: PatchField::Value(order.iter().map(ToString::to_string).collect()) };
    let (list, undo) = (format!("/app/pages/{page}/monitors"), UndoOffer::default());
    let path =
        |order: &MonitorOrder| Toast::address_with_undo(&list, "monitors-reordered", order.ids.len(), undo.token());
    let answer = |order: &MonitorOrder| path(order).into_bytes();
    let once = IdempotentRequest::new(idempotency_key, &answer).undoable(&undo);
    match context.service.monitors.reorder(&caller, page, &edit, &once).await {
        Ok(outcome) => Ok(see_other(&result_path(outcome, path))),
        Err(error) => {
            let refusal = FormRefusal::of(error)?;
            // A form that names other monitors than the page has: one came or went since it was compared.
            let monitors = context.service.monitors.list(&caller, page).await?;
            let ids = merged(&order, &ids_of(&monitors));
            let mut drawn = DrawnOrder { ids, ..DrawnOrder::changed(&order, &monitors, None) };
            if let Some(problem) = refusal.problem {
                drawn.problem = Some((problem, refusal.status));
            }
            draw(&context, &mut call, (page, &monitors), drawn).await
        }
    }
}

/// Numbers as typed, by monitor.
type TypedNumbers = BTreeMap<MonitorId, String>;

/// The order on the form.
struct DrawnOrder {
    ids: Vec<MonitorId>,
    /// Numbers of a form that could not be read; the others are those of the order.
    typed: TypedNumbers,
    once: String,
    problem: Option<(String, FormStatus)>,
}

impl DrawnOrder {
    /// A form that has to be checked again, since the stored order is another one than when it was drawn, or has other
    /// monitors. It is a new form.
    fn changed(sent: &[MonitorId], monitors: &[MonitorWithState], by: Option<String>) -> Self {
        let present: Vec<(MonitorId, &str)> = monitors.iter().map(|it| (it.monitor.id, &*it.monitor.name)).collect();
        let problem = format!("{} Check the order and save it again.", what_changed(sent, &present, by));
        let problem = Some((problem, StatusCode::CONFLICT.into()));
        Self { ids: Vec::new(), typed: TypedNumbers::new(), once: new_key(), problem }
    }
}

/// Says what changed about a page's monitors since a form with those was drawn, and who changed their order.
fn what_changed(sent: &[MonitorId], present: &[(MonitorId, &str)], by: Option<String>) -> String {
    let added: Vec<&str> = present.iter().filter(|(id, _)| !sent.contains(id)).map(|(_, name)| *name).collect();
    let deleted = sent.iter().filter(|id| present.iter().all(|(other, _)| other != *id)).count();
    let added = match &added[..] {
        [] => None,
        [one] => Some(format!("“{one}” was added meanwhile.")),
        many => Some(format!("{} monitors were added meanwhile.", many.len())),
    };
    let deleted = match deleted {
        0 => None,
        1 => Some("1 monitor was deleted meanwhile.".to_owned()),
        many => Some(format!("{many} monitors were deleted meanwhile.")),
    };
    let sentences: Vec<String> = added.into_iter().chain(deleted).collect();
    if sentences.is_empty() {
        let by = by.map(|by| format!(" by {by}")).unwrap_or_default();
        return format!("The order was changed{by} meanwhile.");
    }
    sentences.join(" ")
}

async fn draw(
    context: &HttpContext,
    call: &mut RoutedRequest<SignedIn>,
    (page, monitors): (PageId, &[MonitorWithState]),
    drawn: DrawnOrder,
) -> HandlerResult {
    let frame = frame(context, call, Some(page), Section::Monitors).await?;
    let found = drawn.ids.iter().filter_map(|id| monitors.iter().find(|it| it.monitor.id == *id));
    let found: Vec<&MonitorWithState> = found.collect();
    let row = |(at, it): (usize, &&MonitorWithState)| {
        let number = drawn.typed.get(&it.monitor.id).cloned().unwrap_or_else(|| at.to_string());
        OrderRow {
            id: it.monitor.id,
            name: it.monitor.name.clone(),
            group: it.monitor.group.clone().unwrap_or_default(),
            is_wrong: position(&number, found.len()).is_none(),
            number,
        }
    };
    let (problem, status) = drawn.problem.map_or((None, FormStatus::OK), |(text, status)| (Some(text), status));
    let screen = OrderScreen {
        path: frame.path("monitors"),
        rows: (1..).zip(&found).map(row).collect(),
        loaded: fingerprint(&ids_of(monitors)),
        idempotency_key: drawn.once,
        problem,
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

/// Reads a position among that many; `None` if it is none.
fn position(number: &str, count: usize) -> Option<usize> {
    number.trim().parse().ok().filter(|number| (1..=count).contains(number))
}

/// Returns the numbers of a form that were changed, as typed and by monitor. The others follow the order.
fn typed_numbers(sent: &[MonitorId], form: &Form) -> TypedNumbers {
    let numbers = (1..).zip(sent).map(|(at, id)| (at, *id, form.text(&format!("at.{at}")).trim()));
    let typed = numbers.filter(|(at, _, number)| *number != at.to_string());
    // Longer than any position: it is only shown again.
    typed.map(|(_, id, number)| (id, number.chars().take(MAX_SHOWN).collect())).collect()
}

/// Puts each monitor whose number was changed to that position, those of one number in the order of the form; the
/// others keep their order. `None` for a number that is no position.
fn arranged(sent: &[MonitorId], form: &Form) -> Option<Vec<MonitorId>> {
    let (mut order, mut moved) = (Vec::with_capacity(sent.len()), Vec::new());
    for (at, id) in (1..).zip(sent) {
        let number = position(form.text(&format!("at.{at}")), sent.len())?;
        if number == at { order.push(*id) } else { moved.push((number, *id)) }
    }
    moved.sort_by_key(|(number, _)| *number);
    let mut next = 0;
    for (number, id) in moved {
        let place = next.max(number - 1).min(order.len());
        order.insert(place, id);
        next = place + 1;
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
            (["1", "2", "3", "4"], Some([1, 2, 3, 4])),
            (["4", "2", "3", "4"], Some([2, 3, 4, 1])),
            (["1", "2", "3", "1"], Some([4, 1, 2, 3])),
            (["4", "3", "2", "1"], Some([4, 3, 2, 1])),
            (["2", " 2 ", "3", "4"], Some([2, 1, 3, 4])),
            // Those of one number stay in their order, and the next number comes after them.
            (["1", "2", "1", "1"], Some([3, 4, 1, 2])),
            (["4", "4", "3", "4"], Some([3, 4, 1, 2])),
            (["1", "4", "2", "2"], Some([1, 3, 4, 2])),
            (["1", "2", "3", "5"], None),
            (["0", "2", "3", "4"], None),
            (["", "2", "3", "4"], None),
            (["first", "2", "3", "4"], None),
        ] {
            let form = Form::of((1..).zip(numbers).map(|(at, number)| (format!("at.{at}"), number)));
            assert_eq!(arranged(&sent, &form), expected.map(|it: [u128; 4]| ids(&it)), "{numbers:?}");
        }
        assert_eq!(arranged(&sent, &Form::default()), None, "no number");
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
    fn numbers_that_were_changed_are_shown_as_typed() {
        let long = "9".repeat(MAX_SHOWN + 1);
        let form = Form::of([("at.1", "1"), ("at.2", " x "), ("at.3", ""), ("at.4", &*long)]);
        let typed = typed_numbers(&ids(&[1, 2, 3, 4]), &form);
        let expected =
            [(2, "x"), (3, ""), (4, &long[1..])].map(|(id, text)| (MonitorId::from_u128(id), text.to_owned()));
        assert_eq!(typed, TypedNumbers::from(expected));
    }

    #[test]
    fn a_conflict_says_what_changed_and_who_did_it() {
        let present = [(1, "Website"), (2, "Mail"), (3, "Shop")].map(|(id, name)| (MonitorId::from_u128(id), name));
        let by = || Some("Robot".to_owned());
        for (sent, by, expected) in [
            (&[2, 1, 3][..], by(), "The order was changed by Robot meanwhile."),
            (&[2, 1, 3], None, "The order was changed meanwhile."),
            (&[1, 3], by(), "“Mail” was added meanwhile."),
            (&[1], None, "2 monitors were added meanwhile."),
            (&[1, 2, 3, 4], None, "1 monitor was deleted meanwhile."),
            (&[5, 1, 2, 4], None, "“Shop” was added meanwhile. 2 monitors were deleted meanwhile."),
        ] {
            assert_eq!(what_changed(&ids(sent), &present, by), expected);
        }
    }

    #[test]
    fn an_order_is_merged_with_what_came_and_went() {
        assert_eq!(merged(&ids(&[3, 1, 2, 3]), &ids(&[1, 3, 4])), ids(&[3, 1, 4]));
    }
}
