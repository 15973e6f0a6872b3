//! Login to a protected page by password or mailed link, and logout, as plain forms without scripts.
//!
//! These forms reveal nothing about the page behind them, not even its name, since anybody can see them.

mod cookie;

use std::hash::BuildHasher;
use std::sync::Arc;

use ::http::header::{HOST, REFERRER_POLICY, RETRY_AFTER, SET_COOKIE};
use ::http::{HeaderValue, Method, StatusCode};
use foldhash::quality::FixedState;
use parallax_core::time::SECOND;

use super::form::{Fields, from_own_page, in_query, not_from_another, shown};
use super::gate::{self, asked_for};
use crate::http::error::Refused;
use crate::http::reply::Reply;
use crate::http::route::{Answer, Call};
use crate::http::{Context, auth, visitor};
use crate::service::Error;
use crate::service::doors::{PASS_LIFE, Pass};
use crate::service::gate::Entry;
use crate::service::sign_in::{Asking, Browser, LINK_LIFE, Link};
use crate::views::door::{DoorPage, Place};
use crate::views::tongue;

pub(super) use cookie::passes;

/// Bytes of a path that a visitor can be redirected to.
const MAX_PATH: usize = 300;
/// Paths of login and logout, which are never redirect targets.
const WAYS: [&str; 4] = ["/password", "/sign-in", "/sign-in/link", "/sign-out"];

/// `GET /p/{slug}/password`, `GET /p/{slug}/sign-in`: the form, or a redirect for a visitor who has access already.
pub(super) async fn ask(context: Arc<Context>, call: Call<()>) -> Answer {
    gate::enter_or_ask(&context, &call)?;
    Ok(led_to(&At::of(&context, &call)?, ""))
}

/// `POST /p/{slug}/password`
pub(super) async fn password(context: Arc<Context>, mut call: Call<()>) -> Answer {
    call.seal.set();
    from_own_page(&call.headers, context.service.base_url())?;
    let fields = Fields::read(&mut call).await?;
    let at = At::of(&context, &call)?;
    let to = inside(fields.raw("to"));
    let (visitor, now) = (visitor::of(call.peer, &call.headers), context.service.now());
    let tried = match context.passwords.begin(visitor, at.number, now) {
        Ok(tried) => tried,
        Err(seconds) => return Ok(too_many(&at, seconds)),
    };
    match context.service.try_password(&at.slug, fields.raw("password")).await {
        Ok(Some(pass)) => {
            context.passwords.forgive(tried);
            Ok(let_in(&at, &pass, to))
        }
        Ok(None) => match gate::entry(&context, &call, None)? {
            Entry::In(_) => Ok(led_to(&at, to)),
            Entry::Password => Ok(locked(&DoorPage::wrong_password(&at.place, to))),
            Entry::SignIn => Ok(locked(&DoorPage::email(&at.place, to))),
        },
        Err(Error::Busy { seconds }) => {
            context.passwords.forgive(tried);
            Ok(too_many(&at, seconds))
        }
        Err(Error::NotFound) => Err(Refused::Page),
        Err(error) => Err(error.into()),
    }
}

/// `POST /p/{slug}/sign-in`
pub(super) async fn send_link(context: Arc<Context>, mut call: Call<()>) -> Answer {
    from_own_page(&call.headers, context.service.base_url())?;
    let fields = Fields::read(&mut call).await?;
    let at = At::of(&context, &call)?;
    let to = inside(fields.raw("to"));
    match gate::entry(&context, &call, None)? {
        Entry::In(_) => return Ok(led_to(&at, to)),
        Entry::Password => return Ok(locked(&DoorPage::password(&at.place, to))),
        Entry::SignIn => {}
    }
    let now = context.service.now();
    let place = place_of(&call);
    if let Some(Err(found)) = place.map(|place| context.links.admit_all(place, 1, now)) {
        return Ok(too_many(&at, found.reset_seconds));
    }
    let browser = cookie::browser(&call.headers, at.is_https).unwrap_or_else(rand::random::<Browser>);
    let email = fields.one("email").unwrap_or_default();
    let asking =
        Asking { email: email.clone(), address: at.address.clone(), browser, place, to: to.to_owned() };
    match context.service.ask_to_sign_in(&at.slug, &asking).await {
        Ok(()) => {
            let reply = page(&DoorPage::sent(&at.place));
            let kept = cookie::known(browser, LINK_LIFE / SECOND, at.is_https);
            Ok(kept.map_or_else(|| Reply::empty(StatusCode::OK), |kept| reply.with(SET_COOKIE, kept)))
        }
        Err(Error::Invalid(_)) => {
            let again = DoorPage::wrong_email(&at.place, to, &email);
            Ok(page(&again).of(StatusCode::BAD_REQUEST))
        }
        Err(Error::NotFound) => Err(Refused::Page),
        Err(error) => Err(error.into()),
    }
}

/// `GET /p/{slug}/sign-in/link?t=`: a confirmation button. Mail scanners and previews follow links, so a GET
/// changes nothing.
pub(super) async fn look(context: Arc<Context>, call: Call<()>) -> Answer {
    let at = At::of(&context, &call)?;
    match gate::entry(&context, &call, None)? {
        Entry::In(_) => return Ok(led_to(&at, "")),
        Entry::Password => return Ok(locked(&DoorPage::password(&at.place, ""))),
        Entry::SignIn => {}
    }
    let (token, browser) = (in_query(&call.query), cookie::browser(&call.headers, at.is_https));
    Ok(match context.service.link(&at.slug, &token, browser.as_ref())? {
        Link::Good => page(&DoorPage::button(&at.place, &token)),
        Link::Elsewhere => locked(&DoorPage::elsewhere(&at.place)),
        Link::Dead => locked(&DoorPage::dead(&at.place)),
    })
}

/// `POST /p/{slug}/sign-in/link`
pub(super) async fn arrive(context: Arc<Context>, mut call: Call<()>) -> Answer {
    from_own_page(&call.headers, context.service.base_url())?;
    let fields = Fields::read(&mut call).await?;
    let at = At::of(&context, &call)?;
    match gate::entry(&context, &call, None)? {
        Entry::In(_) => return Ok(led_to(&at, "")),
        Entry::Password => return Ok(locked(&DoorPage::password(&at.place, ""))),
        Entry::SignIn => {}
    }
    let browser = cookie::browser(&call.headers, at.is_https);
    match context.service.arrive(&at.slug, fields.raw("t"), browser.as_ref()).await? {
        Ok(arrived) => Ok(let_in(&at, &arrived.pass, inside(&arrived.to))),
        Err(Link::Elsewhere) => Ok(locked(&DoorPage::elsewhere(&at.place))),
        Err(Link::Dead | Link::Good) => Ok(locked(&DoorPage::dead(&at.place))),
    }
}

/// `POST /p/{slug}/sign-out`
pub(super) async fn leave(context: Arc<Context>, call: Call<()>) -> Answer {
    call.seal.set();
    not_from_another(&call.headers, context.service.base_url())?;
    let at = At::of(&context, &call)?;
    let name = context.service.pass_of(&at.slug).map_err(|error| match error {
        Error::NotFound => Refused::Page,
        other => other.into(),
    })?;
    let reply = led_to(&at, "");
    Ok(match cookie::kept(&name, "", 0, at.is_https) {
        Some(taken) => reply.with(SET_COOKIE, taken),
        None => reply,
    })
}

/// Renders the form by which a visitor gets access and is then redirected to the requested path.
pub(super) fn form(context: &Context, call: &Call<()>, entry: &Entry) -> Result<String, Refused> {
    let at = At::of(context, call)?;
    let prefix = format!("/p/{}", at.slug);
    let path = call.path.strip_prefix(&prefix).filter(|_| call.method != Method::POST).unwrap_or_default();
    let to = match call.query.as_str() {
        _ if WAYS.contains(&path) => String::new(),
        "" => path.to_owned(),
        query => format!("{path}?{query}"),
    };
    let to = inside(&to);
    Ok(match entry {
        Entry::Password => DoorPage::password(&at.place, to),
        Entry::SignIn | Entry::In(_) => DoorPage::email(&at.place, to),
    }
    .html())
}

/// Address data of a login request.
struct At {
    slug: String,
    place: Place,
    /// Address of the page as the visitor requested it.
    address: String,
    is_https: bool,
    /// Number that distinguishes this page in the login throttle, whether the page exists or not.
    number: u128,
}

impl At {
    fn of(context: &Context, call: &Call<()>) -> Result<Self, Refused> {
        let (slug, door) = asked_for(context, call)?;
        let service = &context.service;
        let host = call.headers.get(HOST).and_then(|host| host.to_str().ok());
        Ok(Self {
            slug: slug.to_owned(),
            place: Place {
                root: service.root_of(slug, door),
                base: service.base_of(door).to_owned(),
                said: tongue::words(service.language_of(slug)?),
            },
            address: service.address_at(slug, door, host),
            is_https: is_https(context),
            number: u128::from(FixedState::default().hash_one(slug)),
        })
    }
}

/// Returns true if browsers connect by https. Custom hosts are served like the base URL.
pub(super) fn is_https(context: &Context) -> bool {
    context.service.base_url().starts_with("https://")
}

/// Returns a path of the page, or an empty text for anything else, so that no redirect leads to another host (a
/// second slash, a backslash), out of the page (dots), or into a header.
fn inside(to: &str) -> &str {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.~?=&".contains(&byte);
    let is_inside = to.len() <= MAX_PATH
        && (to.starts_with('/') || to.starts_with('?'))
        && to.bytes().all(is_plain)
        && !to.contains("//")
        && !to.contains("..");
    if is_inside { to } else { "" }
}

fn led_to(at: &At, to: &str) -> Reply {
    let path = format!("{}{to}", at.place.root);
    let path = if path.starts_with('/') { path } else { format!("/{path}") };
    Reply::empty(StatusCode::SEE_OTHER).at(&path)
}

fn let_in(at: &At, pass: &Pass, to: &str) -> Reply {
    let reply = led_to(at, to);
    match cookie::kept(&pass.name, &pass.value, PASS_LIFE / SECOND, at.is_https) {
        Some(kept) => reply.with(SET_COOKIE, kept),
        None => reply,
    }
}

/// Replies with a login page. Its referrer policy sends the origin to the service's own host only.
fn page(door: &DoorPage) -> Reply {
    dressed(shown(door.html()))
}

/// Adds the headers of every login page.
pub(in crate::http) fn dressed(reply: Reply) -> Reply {
    reply.with(REFERRER_POLICY, HeaderValue::from_static("same-origin"))
}

fn locked(door: &DoorPage) -> Reply {
    Refused::Locked(door.html()).reply()
}

fn too_many(at: &At, seconds: u32) -> Reply {
    page(&DoorPage::too_many(&at.place, seconds))
        .of(StatusCode::TOO_MANY_REQUESTS)
        .with(RETRY_AFTER, HeaderValue::from(seconds))
}

/// Returns the key under which this visitor's link requests are counted, if their address is known.
fn place_of(call: &Call<()>) -> Option<u128> {
    visitor::of(call.peer, &call.headers).map(|visitor| auth::place_of(visitor.address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_led_out_of_the_page() {
        for good in ["/incidents/inc_0", "/confirm?t=00ff", "/history/2026-11", "/", "?span=30", "/a.b"] {
            assert_eq!(inside(good), good);
        }
        let long = format!("/{}", "a".repeat(MAX_PATH));
        for bad in [
            "",
            "x",
            "//evil.example",
            "/\\evil.example",
            "\\\\evil.example",
            "https://evil.example",
            "/../api",
            "/a//b",
            "/%2e%2e/",
            "/%2F/evil.example",
            "/a\r\nSet-Cookie: b",
            "/a b",
            "/<",
            "@evil.example",
            ".evil",
            "/%5cevil.example/\u{e9}",
            &long,
        ] {
            assert_eq!(inside(bad), "", "{bad}");
        }
    }
}
