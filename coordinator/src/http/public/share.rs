//! The preview image of links to a page.

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

/// Concurrent drawings at most: each takes 3 MB and about ten milliseconds of CPU.
static DRAWING: Semaphore = Semaphore::const_new(2);
/// Cache lifetime. The address changes with the state, but an old address shows the current state.
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
