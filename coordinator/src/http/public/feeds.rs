//! What programs read of a page: the shape of hosted status pages, feeds, and the calendar of maintenance.

use std::cmp::Reverse;
use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;

use ::http::{HeaderMap, HeaderValue, Method};
use futures_util::FutureExt;
use parallax_core::board::{Notice, Range};

use super::enter_feed;
use super::served::{document, for_long, shared};
use crate::http::Context;
use crate::http::route::{Answer, Call, Route, open};
use crate::publish::{Paper, off_the_runtime};
use crate::service::gate::Admitted;
use crate::service::recent::RECENT;
use crate::views::feeds::v2::{self, Sheet};
use crate::views::feeds::{Site, Unwritable, atom, calendar, last_word, rss};

/// For how long one may be kept, and used while a new one is fetched.
const FRESH: HeaderValue = HeaderValue::from_static("public, max-age=30, stale-while-revalidate=60");

/// The routes.
pub(super) fn rows() -> Vec<(&'static str, Vec<(Method, Route)>)> {
    macro_rules! row {
        ($path:literal, $handler:ident) => {
            (
                concat!("/p/{slug}/", $path),
                vec![(Method::GET, open(|context, call| $handler(context, call).boxed()))],
            )
        };
        ($path:literal, $sheet:expr) => {
            (
                concat!("/p/{slug}/api/v2/", $path),
                vec![(Method::GET, open(|context, call| sheet(context, call, $path, $sheet).boxed()))],
            )
        };
    }
    vec![
        row!("summary.json", Sheet::Summary),
        row!("status.json", Sheet::Status),
        row!("components.json", Sheet::Components),
        row!("incidents.json", Sheet::Incidents),
        row!("incidents/unresolved.json", Sheet::Unresolved),
        row!("scheduled-maintenances.json", Sheet::Maintenances),
        row!("scheduled-maintenances/upcoming.json", Sheet::Upcoming),
        row!("scheduled-maintenances/active.json", Sheet::Active),
        row!("feed.atom", atom),
        row!("history.atom", atom),
        row!("feed/atom", atom),
        row!("feed.rss", rss),
        row!("history.rss", rss),
        row!("feed/rss", rss),
        row!("feed", rss),
        row!("maintenance.ics", calendar),
    ]
}

/// `GET /p/{slug}/api/v2/…`
async fn sheet(context: Arc<Context>, call: Call<()>, name: &'static str, sheet: Sheet) -> Answer {
    let page = enter_feed(&context, &call)?;
    let (service, admitted) = (context.service.clone(), page.clone());
    let draw = move || async move {
        let (board, notices) =
            (service.board(&admitted, Range::default()).await?, service.recent(&admitted).await?);
        let address = service.page_url(admitted.page());
        off_the_runtime(move || {
            v2::write(sheet, Site { page: &board.page, address: &address }, &board, &notices)
        })
        .await
    };
    served(&context, &call.headers, &page, (name, "application/json"), draw).await
}

/// `GET /p/{slug}/feed.atom`, and where readers of other status pages look for it.
async fn atom(context: Arc<Context>, call: Call<()>) -> Answer {
    feed(context, call, ("feed.atom", atom::MEDIA), atom::write).await
}

/// `GET /p/{slug}/feed.rss`, and where readers of other status pages look for it.
async fn rss(context: Arc<Context>, call: Call<()>) -> Answer {
    feed(context, call, ("feed.rss", rss::MEDIA), rss::write).await
}

/// `GET /p/{slug}/maintenance.ics`
async fn calendar(context: Arc<Context>, call: Call<()>) -> Answer {
    let page = enter_feed(&context, &call)?;
    let (service, admitted) = (context.service.clone(), page.clone());
    let draw = move || async move {
        let windows = service.windows(&admitted).await?;
        let address = service.page_url(admitted.page());
        let drawn = move || {
            Ok::<_, Infallible>(calendar::write(Site { page: admitted.page(), address: &address }, &windows))
        };
        off_the_runtime(drawn).await
    };
    served(&context, &call.headers, &page, ("maintenance.ics", calendar::MEDIA), draw).await
}

type Write = fn(Site<'_>, &[Notice]) -> Result<Vec<u8>, Unwritable>;

/// The feed of what was told of last.
async fn feed(
    context: Arc<Context>,
    call: Call<()>,
    kind: (&'static str, &'static str),
    write: Write,
) -> Answer {
    let page = enter_feed(&context, &call)?;
    let (service, admitted) = (context.service.clone(), page.clone());
    let draw = move || async move {
        let mut notices = service.recent(&admitted).await?;
        let address = service.page_url(admitted.page());
        off_the_runtime(move || {
            notices.sort_by_key(|notice| (Reverse(last_word(&notice.incident)), Reverse(notice.incident.id)));
            notices.truncate(RECENT);
            write(Site { page: admitted.page(), address: &address }, &notices)
        })
        .await
    };
    served(&context, &call.headers, &page, kind, draw).await
}

async fn served<F, D>(
    context: &Context,
    headers: &HeaderMap,
    page: &Admitted,
    (name, media): (&'static str, &'static str),
    draw: D,
) -> Answer
where
    D: FnOnce() -> F + Send + 'static,
    F: Future<Output = crate::service::Result<Vec<u8>>> + Send + 'static,
{
    let written = context.boards.kept(page, Paper::Other(name), media, draw).await?;
    Ok(for_long(page, shared(page, document(page, &written, headers)), FRESH))
}
