//! The picture that a link to a page shows where it is shared.

use std::sync::Arc;

use ::http::{HeaderValue, Method};
use futures_util::FutureExt;
use parallax_core::board::Range;
use tokio::sync::Semaphore;

use super::enter;
use super::served::{document, for_long};
use crate::http::Context;
use crate::http::error::Refused;
use crate::http::route::{Answer, Call, Route, open};
use crate::publish::{Paper, off_the_runtime};
use crate::service::Error;
use crate::views::share::{Sight, draw};

/// Pictures that are drawn at once: each takes 3 MB and some ten milliseconds of a processor.
static DRAWING: Semaphore = Semaphore::const_new(2);
/// For how long one may be kept. Its address changes with it, but an old address shows what is so now.
const FRESH: HeaderValue = HeaderValue::from_static("public, max-age=300, stale-while-revalidate=3600");

/// The route.
pub(super) fn rows() -> Vec<(&'static str, Vec<(Method, Route)>)> {
    let route = open(|context, call| picture(context, call).boxed());
    vec![("/p/{slug}/og-{state}.png", vec![(Method::GET, route)])]
}

/// `GET /p/{slug}/og-{state}.png`
async fn picture(context: Arc<Context>, call: Call<()>) -> Answer {
    let page = enter(&context, &call)?;
    let state = call.param("state")?;
    let is_one = state.len() == 12 && state.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if !is_one {
        return Err(Refused::Page);
    }
    let (service, admitted) = (context.service.clone(), page.clone());
    let draw = move || async move {
        let board = service.board(&admitted, Some(Range::Quarter)).await?;
        let _turn = DRAWING.acquire().await.map_err(|error| Error::Internal(error.to_string()))?;
        off_the_runtime(move || draw(&Sight::of(&board))).await
    };
    let drawn = context.boards.kept(&page, Paper::Other("og.png"), "image/png", draw).await?;
    Ok(for_long(&page, document(&page, &drawn, &call.headers), FRESH))
}
