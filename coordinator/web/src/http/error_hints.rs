//! Hints for API errors: explains what is wrong with a key, an id or a path. Hints change only the message, and reveal
//! nothing that the key can't access.

use std::borrow::Cow;

use ::http::HeaderMap;
use ::http::header::AUTHORIZATION;
use parallax_core::id::{
    AccountId, DeliveryId, DeployId, DestinationId, IncidentId, KeyId, MonitorId, PageId, SeriesId, SubscriberId,
    UpdateId,
};
use parallax_service::{Caller, ServiceError};

use super::error::ApiError;
use super::route::RouteTable;
use super::routed_request::RoutedRequest;
use super::{API_PREFIX, HttpContext};

/// Characters of a header or path that a message may quote.
const MAX_QUOTED: usize = 40;

/// Length of a path above which no similar route is searched, in bytes.
const MAX_PATH_BYTES: usize = 300;

/// Kinds of ids: prefix, noun, and the route that lists them.
const ID_KINDS: [(&str, &str, &str); 11] = [
    (PageId::PREFIX, "page", "GET /api/v1/pages"),
    (MonitorId::PREFIX, "monitor", "GET /api/v1/pages/{pageId}/monitors"),
    (IncidentId::PREFIX, "incident", "GET /api/v1/pages/{pageId}/incidents"),
    (DeployId::PREFIX, "deploy", "GET /api/v1/pages/{pageId}/deploys"),
    (DestinationId::PREFIX, "destination", "GET /api/v1/pages/{pageId}/destinations"),
    (DeliveryId::PREFIX, "delivery", "GET /api/v1/pages/{pageId}/deliveries"),
    (SubscriberId::PREFIX, "subscriber", "GET /api/v1/pages/{pageId}/subscribers"),
    (UpdateId::PREFIX, "update", "GET /api/v1/pages/{pageId}/incidents"),
    (SeriesId::PREFIX, "repeating entry", "GET /api/v1/pages/{pageId}/incidents"),
    (KeyId::PREFIX, "key", "GET /api/v1/me"),
    (AccountId::PREFIX, "account", "GET /api/v1/me"),
];

/// Explains why the headers contain no API key.
pub(super) fn missing_key(headers: &HeaderMap) -> Cow<'static, str> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let Some(value) = values.next() else {
        let other_header =
            ["x-api-key", "api-key", "x-auth-token"].into_iter().find(|name| headers.contains_key(*name));
        return other_header
            .map_or(Cow::Borrowed("no API key: send the header `Authorization: Bearer plx_…`"), |name| {
                format!("the header {name} is not read: send the header `Authorization: Bearer plx_…`").into()
            });
    };
    if values.next().is_some() {
        return "there are two Authorization headers: send one".into();
    }
    let Ok(text) = value.to_str() else {
        return "the Authorization header must be ASCII: `Authorization: Bearer plx_…`".into();
    };
    let text = text.trim();
    let (scheme, token) = text.split_once(' ').unwrap_or((text, ""));
    if scheme.eq_ignore_ascii_case("bearer") {
        return "no key follows Bearer in the Authorization header".into();
    }
    if text.starts_with("plx_") {
        return "Bearer is missing before the key: `Authorization: Bearer plx_…`".into();
    }
    if token.is_empty() || !scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
        return "the Authorization header must be `Bearer`, a space and the key".into();
    }
    format!("the Authorization header has the scheme {scheme:.MAX_QUOTED$}: it must be Bearer").into()
}

/// Explains which part of a path is not a valid id of the expected kind. Returns `None` if all are valid.
///
/// The message depends on the text alone, except for the slug of a page that the key can access.
pub(super) fn invalid_id(context: &HttpContext, call: &RoutedRequest<Caller>) -> Option<String> {
    let parts = call.params.iter();
    let (name, text) = parts.map(|(name, text)| (name.as_str(), text.as_str())).find(|(name, text)| {
        let id_kind = ID_KINDS.iter().find(|(_, resource, _)| resource == name);
        id_kind.is_some_and(|(prefix, ..)| !is_id(prefix, text))
    })?;
    let (prefix, kind, list_route) = ID_KINDS.iter().find(|(_, resource, _)| *resource == name)?;
    if let Some((other, resource, _)) = ID_KINDS.iter().find(|(other, ..)| other != prefix && text.starts_with(other)) {
        return Some(format!(
            "{other}… is the id of {}, but the id of {} is expected",
            with_article(resource),
            with_article(kind)
        ));
    }
    if name == "page"
        && let Ok(Some(id)) = context.service.pages.id_by_slug(&call.caller, text)
    {
        return Some(format!("{text:.63} is the slug of a page: its id is {id}"));
    }
    let explanation = if text.starts_with(prefix) {
        format!("this id is cut off or mistyped: {prefix} and 26 characters are expected")
    } else {
        format!("the id of {} begins with {prefix}", with_article(kind))
    };
    Some(format!("{explanation}; {list_route} lists them"))
}

/// Replaces a plain not-found error by one with the hint.
pub(super) fn with_hint(help: Option<String>, error: ApiError) -> ApiError {
    match (error, help) {
        (ApiError::Service(ServiceError::NotFound), Some(words)) => ApiError::NotFoundWithHint(words.into()),
        (error, _) => error,
    }
}

/// Suggests a route for a path without one, if a similar path has a route.
pub(super) fn similar_route(table: &RouteTable, path: &str) -> Option<Cow<'static, str>> {
    let is_route = |path: &str| path.starts_with(API_PREFIX) && table.contains(path);
    if path.len() > MAX_PATH_BYTES {
        return None;
    }
    let hint = |why: &str, path: &str| Some(format!("no route matches this path: {why}, try {path}").into());
    let mut single = path.to_owned();
    while single.contains("//") {
        single = single.replace("//", "/");
    }
    let single = if single.len() > 1 { single.strip_suffix('/').unwrap_or(&single) } else { &single };
    if single != path && is_route(single) {
        return hint("it has an extra slash", single);
    }
    if let Some(rest) = single.strip_prefix(API_PREFIX).filter(|rest| rest.starts_with(API_PREFIX) && is_route(rest)) {
        return hint("it contains /api/v1 twice", rest);
    }
    let below = ["/v1/", "/api/", "/"].into_iter().find_map(|start| single.strip_prefix(start));
    if let Some(completed) =
        below.map(|rest| format!("{API_PREFIX}/{rest}")).filter(|completed| single != completed && is_route(completed))
    {
        return hint("API paths begin with /api/v1", &completed);
    }
    let small = single.to_ascii_lowercase();
    if small != single && small.starts_with(API_PREFIX) && is_route(&small) {
        return Some("no route matches this path: paths are lowercase".into());
    }
    None
}

fn is_id(prefix: &str, text: &str) -> bool {
    match prefix {
        PageId::PREFIX => text.parse::<PageId>().is_ok(),
        MonitorId::PREFIX => text.parse::<MonitorId>().is_ok(),
        IncidentId::PREFIX => text.parse::<IncidentId>().is_ok(),
        DeployId::PREFIX => text.parse::<DeployId>().is_ok(),
        DestinationId::PREFIX => text.parse::<DestinationId>().is_ok(),
        DeliveryId::PREFIX => text.parse::<DeliveryId>().is_ok(),
        SubscriberId::PREFIX => text.parse::<SubscriberId>().is_ok(),
        _ => true,
    }
}

fn with_article(kind: &str) -> String {
    let vowel = kind.starts_with(['a', 'e', 'i', 'o', 'u']);
    format!("{} {kind}", if vowel { "an" } else { "a" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_key_is_explained_by_the_header_that_was_sent() {
        let headers = |sent: &[(&'static str, &str)]| {
            sent.iter()
                .map(|(name, value)| (name.parse::<::http::HeaderName>().unwrap(), value.parse().unwrap()))
                .collect::<HeaderMap>()
        };
        for (sent, expected) in [
            (&[][..], "no API key: send the header"),
            (&[("x-api-key", "plx_abc")], "the header x-api-key is not read"),
            (&[("authorization", "plx_abc")], "Bearer is missing"),
            (&[("authorization", "Bearer")], "no key follows Bearer"),
            (&[("authorization", "bearer ")], "no key follows Bearer"),
            (&[("authorization", "Basic YTpi")], "has the scheme Basic"),
            (&[("authorization", "abc")], "must be `Bearer`, a space and the key"),
            (&[("authorization", "Bearer a"), ("authorization", "Bearer b")], "two Authorization headers"),
        ] {
            let explained = missing_key(&headers(sent));
            assert!(explained.contains(expected), "{sent:?}: {explained}");
        }
    }
}
