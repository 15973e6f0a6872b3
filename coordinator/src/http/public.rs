//! The visitor's side: a page's name and the state of its monitors.

use std::fmt::Write;
use std::sync::Arc;

use super::Context;
use super::error::Refused;
use super::reply::Reply;
use super::route::{Answer, Call};
use crate::service::Error;

/// `GET /`
pub(super) async fn root(_context: Arc<Context>, _call: Call<()>) -> Answer {
    Ok(Reply::html(document("Parallax", "<p>Status pages and monitoring.</p>")))
}

/// `GET /p/{slug}`
pub(super) async fn page(context: Arc<Context>, call: Call<()>) -> Answer {
    let overview =
        context.service.public_overview(call.param("slug")?).await.map_err(|error| match error {
            // A visitor has no key to speak of.
            Error::NotFound => Refused::Route,
            other => other.into(),
        })?;
    let mut body = format!("<p>{}</p><ul>", escaped(&overview.headline));
    for shown in &overview.monitors {
        // Writing to a string does not fail.
        let _ = write!(body, "<li>{}: {}</li>", escaped(&shown.monitor.name), shown.view.status.name());
    }
    body.push_str("</ul>");
    Ok(Reply::html(document(&escaped(&overview.page.name), &body)))
}

fn document(title: &str, body: &str) -> String {
    format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>{title}</title><h1>{title}</h1>{body}</html>"
    )
}

/// Text as HTML text.
fn escaped(text: &str) -> String {
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
