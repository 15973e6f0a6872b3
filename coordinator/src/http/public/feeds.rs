//! Machine-readable views of a page: the API of hosted status pages, feeds, and the maintenance calendar.

use std::cmp::Reverse;
use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;

use ::http::{HeaderMap, HeaderValue, Method};
use futures_util::FutureExt;
use parallax_core::board::{Notice, Range};

use super::served::{document, for_long, shared};
use super::{enter_feed, token_of};
use crate::http::Context;
use crate::http::route::{Answer, Call, Route, open};
use crate::publish::{Paper, off_the_runtime};
use crate::service::gate::Admitted;
use crate::views::feeds::v2::{self, Sheet};
use crate::views::feeds::{Site, Unwritable, atom, calendar, listed, rss};

/// Cache lifetime, and for how long a stale copy may be used while a new one is fetched.
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
            (service.board(&admitted, Some(Range::Quarter)).await?, service.recent(&admitted).await?);
        let address = service.page_url(admitted.page());
        off_the_runtime(move || {
            v2::write(sheet, Site { page: &board.page, address: &address }, &board, &notices)
        })
        .await
    };
    served(&context, &call.headers, &page, (Paper::Sheet(name), "application/json"), draw).await
}

/// `GET /p/{slug}/feed.atom`, and the paths that other status pages use.
async fn atom(context: Arc<Context>, call: Call<()>) -> Answer {
    feed(context, call, ATOM).await
}

/// `GET /p/{slug}/feed.rss`, and the paths that other status pages use.
async fn rss(context: Arc<Context>, call: Call<()>) -> Answer {
    feed(context, call, RSS).await
}

/// `GET /p/{slug}/maintenance.ics`
async fn calendar(context: Arc<Context>, call: Call<()>) -> Answer {
    let page = enter_feed(&context, &call)?;
    let (service, admitted) = (context.service.clone(), page.clone());
    let draw = move || async move {
        let windows = service.windows(&admitted).await?;
        let deleted = service.cancelled_windows(&admitted).await?;
        let address = service.page_url(admitted.page());
        let drawn = move || {
            Ok::<_, Infallible>(calendar::write(
                Site { page: admitted.page(), address: &address },
                &windows,
                &deleted,
            ))
        };
        off_the_runtime(drawn).await
    };
    served(&context, &call.headers, &page, (Paper::Other("maintenance.ics"), calendar::MEDIA), draw).await
}

/// Writes a feed; the second argument is the feed's own address.
type Write = fn(Site<'_>, &str, &[Notice]) -> Result<Vec<u8>, Unwritable>;

/// A feed format.
#[derive(Clone, Copy)]
struct Kind {
    /// Path below the page's address.
    path: &'static str,
    /// Cache names: plain and by token, since the feed contains its own address.
    names: [&'static str; 2],
    media: &'static str,
    write: Write,
}

const ATOM: Kind = Kind {
    path: "/feed.atom",
    names: ["feed.atom", "feed.atom by token"],
    media: atom::MEDIA,
    write: atom::write,
};
const RSS: Kind = Kind {
    path: "/feed.rss",
    names: ["feed.rss", "feed.rss by token"],
    media: rss::MEDIA,
    write: rss::write,
};

/// Serves the feed of recent incidents and maintenance. A feed read by token names its address with the token, so
/// that readers who follow the link keep access.
async fn feed(context: Arc<Context>, call: Call<()>, kind: Kind) -> Answer {
    let page = enter_feed(&context, &call)?;
    let (service, admitted) = (context.service.clone(), page.clone());
    let by_token = token_of(&call).and_then(|_| service.feed_address(page.page()));
    let [plain, tokened] = kind.names;
    let name = if by_token.is_some() { tokened } else { plain };
    let draw = move || async move {
        let mut notices = service.recent(&admitted).await?;
        let address = service.page_url(admitted.page());
        let own = format!("{}{}", by_token.as_ref().unwrap_or(&address), kind.path);
        off_the_runtime(move || {
            notices.sort_by_key(|notice| (Reverse(notice.incident.last_word()), Reverse(notice.incident.id)));
            let listed: Vec<Notice> = listed(notices.iter()).cloned().collect();
            (kind.write)(Site { page: admitted.page(), address: &address }, &own, &listed)
        })
        .await
    };
    served(&context, &call.headers, &page, (Paper::Other(name), kind.media), draw).await
}

async fn served<F, D>(
    context: &Context,
    headers: &HeaderMap,
    page: &Admitted,
    (paper, media): (Paper, &'static str),
    draw: D,
) -> Answer
where
    D: FnOnce() -> F + Send + 'static,
    F: Future<Output = crate::service::Result<Vec<u8>>> + Send + 'static,
{
    let written = context.boards.kept(page, paper, media, draw).await?;
    Ok(for_long(page, shared(page, document(page, &written, headers)), FRESH))
}
