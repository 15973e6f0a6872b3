//! The login form that a visitor without access gets in place of a page, and the way back to that page.

use std::hash::BuildHasher;

use ::http::Method;
use ::http::header::HOST;
use foldhash::quality::FixedState;
use parallax_i18n::page_messages;
use parallax_service::page_access::authorize::{AccessDecision, AuthorizedPage};

use super::access_check::{authorize, check_access, feed_token, requested_page};
use super::cookie;
use super::form::access_page;
use crate::http::HttpContext;
use crate::http::error::ApiError;
use crate::http::routed_request::RoutedRequest;
use crate::views::access_pages::{AccessContext, AccessPage};

/// Bytes of a path that a visitor can be redirected to.
const MAX_PATH: usize = 300;
/// Paths of login and logout, which are never redirect targets.
const LOGIN_PATHS: [&str; 4] = ["/password", "/sign-in", "/sign-in/link", "/sign-out"];

/// Like [`authorize`], for pages that people view: a visitor without access gets the login form and is redirected back
/// afterwards.
///
/// # Errors
/// [`ApiError::PageNotFound`] if there is no page, [`ApiError::LoginRequired`] if this visitor may not see it.
pub(super) fn authorize_or_login(context: &HttpContext, call: &RoutedRequest<()>) -> Result<AuthorizedPage, ApiError> {
    if feed_token(call).is_some() {
        return authorize(context, call);
    }
    match check_access(context, call, None)? {
        AccessDecision::Granted(page) => Ok(*page),
        locked => {
            let form = login_form(context, call, &locked)?;
            Err(ApiError::LoginRequired(Box::new(access_page(form.html()))))
        }
    }
}

/// Renders the form by which a visitor gets access and is then redirected to the requested path.
fn login_form(context: &HttpContext, call: &RoutedRequest<()>, entry: &AccessDecision) -> Result<AccessPage, ApiError> {
    let at = LoginContext::of(context, call)?;
    let prefix = format!("/p/{}", at.slug);
    let path = call.path.strip_prefix(&prefix).filter(|_| call.method != Method::POST).unwrap_or_default();
    let to = match call.query.as_str() {
        _ if LOGIN_PATHS.contains(&path) => String::new(),
        "" => path.to_owned(),
        query => format!("{path}?{query}"),
    };
    let to = safe_path(&to);
    Ok(match entry {
        AccessDecision::PasswordRequired => AccessPage::password(&at.access, to),
        AccessDecision::SignInRequired | AccessDecision::Granted(_) => AccessPage::email(&at.access, to),
    })
}

/// Address data of a login request.
pub(super) struct LoginContext {
    pub(super) slug: String,
    pub(super) access: AccessContext,
    /// Address of the page as the visitor requested it.
    pub(super) address: String,
    pub(super) is_https: bool,
    /// Number that distinguishes this page in the login throttle, whether the page exists or not.
    pub(super) throttle_key: u128,
}

impl LoginContext {
    /// Collects it from the request.
    pub(super) fn of(context: &HttpContext, call: &RoutedRequest<()>) -> Result<Self, ApiError> {
        let (slug, address) = requested_page(context, call)?;
        let service = &context.service;
        let host = call.headers.get(HOST).and_then(|host| host.to_str().ok());
        Ok(Self {
            slug: slug.to_owned(),
            access: AccessContext {
                root: service.hosts.path_prefix_of(slug, address),
                base: service.hosts.shared_prefix(address).to_owned(),
                messages: page_messages::messages(service.page_access.page_language(slug)?),
            },
            address: service.hosts.page_url_at(slug, address, host),
            is_https: cookie::is_https(context),
            throttle_key: u128::from(FixedState::default().hash_one(slug)),
        })
    }
}

/// Returns a path of the page, or an empty text for anything else, so that no redirect leads to another host (a
/// second slash, a backslash), out of the page (dots), or into a header.
pub(in crate::http) fn safe_path(to: &str) -> &str {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.~?=&".contains(&byte);
    let is_inside = to.len() <= MAX_PATH
        && (to.starts_with('/') || to.starts_with('?'))
        && to.bytes().all(is_plain)
        && !to.contains("//")
        && !to.contains("..");
    if is_inside { to } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirect_stays_on_the_page() {
        for allowed in ["/incidents/inc_0", "/confirm?t=00ff", "/history/2026-11", "/", "?span=30", "/a.b"] {
            assert_eq!(safe_path(allowed), allowed);
        }
        let too_long = format!("/{}", "a".repeat(MAX_PATH));
        for rejected in [
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
            &too_long,
        ] {
            assert_eq!(safe_path(rejected), "", "{rejected}");
        }
    }
}
