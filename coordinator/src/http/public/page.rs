//! The visitor's side: a page's name and the state of its monitors.

use std::fmt::Write;
use std::sync::Arc;

use ::http::header::ACCESS_CONTROL_ALLOW_ORIGIN;
use ::http::{HeaderValue, StatusCode};

use super::enter;
use crate::http::Context;
use crate::http::api::pages::status;
use crate::http::reply::Reply;
use crate::http::route::{Answer, Call};

/// `GET /`
pub(super) async fn root(_context: Arc<Context>, _call: Call<()>) -> Answer {
    Ok(Reply::html(document("Parallax", "<p>Status pages and monitoring.</p>")))
}

/// `GET /p/{slug}`
pub(super) async fn show(context: Arc<Context>, call: Call<()>) -> Answer {
    let page = enter(&context, &call)?;
    let overview = context.service.public_overview(&page).await?;
    let mut body = format!("<p>{}</p><ul>", escaped(&overview.headline));
    for shown in &overview.monitors {
        // Writing to a string does not fail.
        let _ = write!(body, "<li>{}: {}</li>", escaped(&shown.monitor.name), shown.view.status.name());
    }
    body.push_str("</ul>");
    Ok(Reply::html(document(&escaped(&overview.page.name), &body)))
}

/// `GET /p/{slug}/status.json`
pub(super) async fn status(context: Arc<Context>, call: Call<()>) -> Answer {
    let page = enter(&context, &call)?;
    let overview = context.service.public_overview(&page).await?;
    let reply = Reply::json(StatusCode::OK, &status::written(&context.service, &overview));
    Ok(reply.with(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*")))
}

fn document(title: &str, body: &str) -> String {
    format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>{title}</title><h1>{title}</h1>{body}</html>"
    )
}

/// Text as HTML text.
pub(super) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            other => safe.push(other),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_can_not_become_markup() {
        assert_eq!(escaped("<b onload='x'>&\""), "&lt;b onload=&#39;x&#39;&gt;&amp;&quot;");
    }
}
