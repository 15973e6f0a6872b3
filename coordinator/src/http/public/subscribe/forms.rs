//! The pages of subscribers as HTML: everything that came from people is escaped where it is put in.

use std::collections::BTreeSet;
use std::fmt::Write;

use parallax_core::id::MonitorId;
use parallax_core::page::Page;
use parallax_core::refusal::Refusals;

use super::super::page::escaped;
use crate::views::assets;

/// What was typed, and what is wrong with it.
#[derive(Debug, Default)]
pub(super) struct Form {
    pub(super) email: Option<String>,
    pub(super) url: Option<String>,
    pub(super) faults: Refusals,
}

/// A page's monitors by id and name, and those that are chosen; none chosen means the whole page.
#[derive(Debug)]
pub(super) struct Choice {
    all: Vec<(String, String)>,
    chosen: Option<BTreeSet<String>>,
}

impl Choice {
    pub(super) fn of(all: &[(MonitorId, String)], chosen: Option<&[String]>) -> Self {
        Self {
            all: all.iter().map(|(id, name)| (id.to_string(), name.clone())).collect(),
            chosen: chosen.map(|ids| ids.iter().cloned().collect()),
        }
    }

    /// Two radio buttons and a box for each monitor; nothing where there is nothing to choose from.
    fn html(&self) -> String {
        if self.all.is_empty() {
            return String::new();
        }
        let mark = |is_on: bool| if is_on { " checked" } else { "" };
        let mut html = format!(
            "<fieldset class=\"choice\"><legend>About</legend><label><input type=\"radio\" name=\"scope\" value=\"page\"{}> \
             the whole page</label><label><input type=\"radio\" name=\"scope\" value=\"chosen\"{}> only these:</label>",
            mark(self.chosen.is_none()),
            mark(self.chosen.is_some())
        );
        for (id, name) in &self.all {
            let is_on = self.chosen.as_ref().is_some_and(|ids| ids.contains(id));
            // Writing to a string does not fail.
            let _ = write!(
                html,
                "<label><input type=\"checkbox\" name=\"monitors\" value=\"{}\"{}> {}</label>",
                escaped(id),
                mark(is_on),
                escaped(name)
            );
        }
        html.push_str("</fieldset>");
        html
    }
}

/// The form by which one asks to be told. Of a page that not everybody may see it also tells where programs read it.
pub(super) fn subscribe(page: &Page, form: &Form, choice: &Choice, feeds: Option<&str>) -> String {
    let typed = |text: &Option<String>| escaped(text.as_deref().unwrap_or_default());
    let body = format!(
        "<h2>Get updates</h2><p>Incidents and maintenance of this page, as they are told here.</p>{}\
         <form method=\"post\" action=\"subscribe\"><label for=\"email\">Email</label>\
         <input id=\"email\" name=\"email\" type=\"email\" maxlength=\"254\" autocomplete=\"email\" required value=\"{}\">{}\
         <button class=\"btn main\">Subscribe</button><p>You confirm by a link that we send, and can leave with every mail.</p></form>\
         <h2>By webhook</h2><form method=\"post\" action=\"subscribe\"><label for=\"url\">Address</label>\
         <input id=\"url\" name=\"url\" type=\"url\" maxlength=\"2000\" required value=\"{}\">{}\
         <button class=\"btn main\">Subscribe</button><p>We post a challenge to it once: JSON with a member <code>challenge</code>, whose \
         value has to be the answer. News are posted as signed JSON.</p></form>{}",
        faults(&form.faults),
        typed(&form.email),
        choice.html(),
        typed(&form.url),
        choice.html(),
        feeds.map_or_else(String::new, by_program),
    );
    document(page, "Get updates", &body)
}

fn by_program(address: &str) -> String {
    let mut html = "<h2>By feed reader, calendar or program</h2><p>These addresses open without a sign-in: whoever has one \
                    reads along, so give them to nobody. They change whenever the page's access does.</p><dl>"
        .to_owned();
    for (name, path) in [
        ("Feed", "feed.atom"),
        ("Calendar of maintenance", "maintenance.ics"),
        ("Status as JSON", "status.json"),
    ] {
        // Writing to a string does not fail.
        let _ = write!(html, "<dt>{name}</dt><dd><code>{}/{path}</code></dd>", escaped(address));
    }
    html.push_str("</dl>");
    html
}

/// What whoever gave a mailbox is told, whatever there is to it.
pub(super) fn mailed(page: &Page) -> String {
    let body = "<h2>Look into your mailbox</h2><p>A mail with a link is on its way, if this address may get one. Nothing \
                is sent before you have confirmed. We write to an address once a day at most: where no mail comes, look for an \
                earlier one, or ask again tomorrow.</p>";
    document(page, "Look into your mailbox", body)
}

/// What whoever gave a webhook is told, whatever there is to it.
pub(super) fn challenged(page: &Page, secret: &str, link: &str) -> String {
    let body = format!(
        "<h2>A challenge was sent</h2><p>Once the address has answered it, it gets the news of this page. An address is \
         asked once a day at most.</p><p>What follows is shown this once. It is void if the address is subscribed already, or \
         was asked today.</p><dl><dt>Secret that its deliveries are signed with</dt><dd><code>{}</code></dd>\
         <dt>To change what it hears of</dt><dd><a href=\"confirm?t={}\">this link</a></dd>\
         <dt>To end it</dt><dd><a href=\"unsubscribe?t={}\">this link</a></dd></dl>",
        escaped(secret),
        escaped(link),
        escaped(link),
    );
    document(page, "A challenge was sent", &body)
}

/// The form by which one confirms, or changes what he hears of.
pub(super) fn choose(
    page: &Page,
    address: &str,
    is_new: bool,
    link: &str,
    choice: &Choice,
    wrong: &Refusals,
) -> String {
    let (title, button) = if is_new { ("Confirm", "Yes, tell me") } else { ("What you are told of", "Save") };
    let body = format!(
        "<h2>{title}</h2><p>Updates of {} to <strong>{}</strong>.</p>{}<form method=\"post\" action=\"confirm\">{}{}\
         <button class=\"btn main\">{button}</button></form><p><a href=\"unsubscribe?t={}\">Rather not</a></p>",
        escaped(&page.name),
        escaped(address),
        faults(wrong),
        hidden(link),
        choice.html(),
        escaped(link),
    );
    document(page, title, &body)
}

/// It is done.
pub(super) fn confirmed(page: &Page, link: &str) -> String {
    let body = format!(
        "<h2>Done</h2><p>You are told of incidents and maintenance from now on.</p>\
         <p><a href=\"confirm?t={}\">Change what you are told of</a></p>",
        escaped(link)
    );
    document(page, "Done", &body)
}

/// The form by which one leaves.
pub(super) fn leave(page: &Page, link: &str) -> String {
    let body = format!(
        "<h2>Unsubscribe</h2><p>No more updates of {}.</p><form method=\"post\" action=\"unsubscribe\">{}\
         <button class=\"btn main\">Unsubscribe</button></form><p><a href=\"confirm?t={}\">Change what you are told of instead</a></p>",
        escaped(&page.name),
        hidden(link),
        escaped(link),
    );
    document(page, "Unsubscribe", &body)
}

/// One who has left.
pub(super) fn left(page: &Page) -> String {
    let body = "<h2>You are unsubscribed</h2><p>Nothing more is sent to you about this page.</p>";
    document(page, "You are unsubscribed", body)
}

/// A link that is good for nothing.
pub(super) fn void(page: &Page) -> String {
    let body = "<h2>This link is not valid</h2><p>It may have been too late, or used to unsubscribe. You can \
                <a href=\"subscribe\">subscribe again</a>.</p>";
    document(page, "This link is not valid", body)
}

/// More wishes than are taken.
pub(super) fn too_many(page: &Page) -> String {
    let body = "<h2>Too many at once</h2><p>Please try again in a minute.</p>";
    document(page, "Too many at once", body)
}

fn hidden(link: &str) -> String {
    format!("<input type=\"hidden\" name=\"t\" value=\"{}\">", escaped(link))
}

fn faults(faults: &Refusals) -> String {
    let mut html = String::new();
    for fault in faults.iter() {
        let _ = write!(html, "<p class=\"fault\" role=\"alert\">{}</p>", escaped(&fault.to_string()));
    }
    html
}

fn document(page: &Page, title: &str, body: &str) -> String {
    let name = escaped(&page.name);
    format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"><meta name=\"robots\" content=\"noindex\">\
         <title>{title}: {name}</title><link rel=\"stylesheet\" href=\"/assets/{}\"></head><body><div class=\"wrap\">\
         <header class=\"top\"><h1>{name}</h1></header><main class=\"card pad form\">{body}</main></div></body></html>",
        assets::style()
    )
}
