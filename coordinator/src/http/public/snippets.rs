//! The page with instructions for embedding a status page in other sites.

use std::sync::Arc;

use ::http::header::CONTENT_SECURITY_POLICY;
use ::http::{HeaderValue, Method};
use futures_util::FutureExt;

use super::enter_or_ask;
use super::served::document;
use crate::http::Context;
use crate::http::route::{Answer, Call, Route, open};
use crate::publish::{HTML, Paper, off_the_runtime};
use crate::views::print;
use crate::views::snippets::SnippetsPage;

/// The page's own policy, plus the embedded frame.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; frame-src 'self'; \
     form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
);

/// The route.
pub(super) fn rows() -> Vec<(&'static str, Vec<(Method, Route)>)> {
    let route = open(|context, call| show(context, call).boxed());
    vec![("/p/{slug}/badges", vec![(Method::GET, route)])]
}

/// `GET /p/{slug}/badges`
async fn show(context: Arc<Context>, call: Call<()>) -> Answer {
    let page = enter_or_ask(&context, &call)?;
    let (service, admitted) = (context.service.clone(), page.clone());
    let draw = move || async move {
        let overview = service.public_overview(&admitted).await?;
        let named = overview.monitors.into_iter().map(|shown| (shown.monitor.id, shown.monitor.name));
        let (monitors, now) = (named.collect::<Vec<_>>(), service.now());
        let address = service.page_url(admitted.page());
        let at =
            move || print(&SnippetsPage::new((admitted.page(), admitted.root()), &address, &monitors, now));
        off_the_runtime(at).await
    };
    let drawn = context.boards.kept(&page, Paper::Other("badges.html"), HTML, draw).await?;
    Ok(document(&page, &drawn, &call.headers).with(CONTENT_SECURITY_POLICY, POLICY))
}
