//! Builds each channel's HTTP request from a rendered message and the destination's credentials.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, header};
use parallax_core::destination::{Channel, ChannelKind, SigningSecrets};
use parallax_core::id::DeliveryId;
use parallax_core::time::Timestamp;
use serde_json::{Map, Value};
use url::Url;

use super::DeliveryError;
use super::http_client::{ChannelRequest, ChannelResponse};
use super::signature::{self, SigningSecret};
use crate::render::pagerduty;

/// Base URLs of services with a single public endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceUrls {
    /// Telegram's Bot API.
    pub telegram: Url,
    /// PagerDuty's Events API v2.
    pub pagerduty: Url,
}

/// Per-attempt metadata that is sent in headers.
#[derive(Debug, Clone, Copy)]
pub struct AttemptMetadata {
    /// Delivery id.
    pub delivery: DeliveryId,
    /// Time of the attempt.
    pub at: Timestamp,
}

/// Builds the request that carries `body`; `None` if the channel doesn't use HTTP.
///
/// # Errors
/// [`DeliveryError::InvalidSetting`] if the destination's settings don't form a valid request.
pub(crate) fn channel_request(
    channel: &Channel,
    body: &[u8],
    metadata: AttemptMetadata,
    bases: &ServiceUrls,
) -> Result<Option<ChannelRequest>, DeliveryError> {
    let request = match channel {
        Channel::Email { .. } => return Ok(None),
        Channel::Webhook { url, secret } => signed_request(url, secret, body, metadata)?,
        // https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks
        // https://discord.com/developers/docs/resources/webhook#execute-webhook
        Channel::Slack { url } | Channel::Discord { url } | Channel::Teams { url } => {
            json_request(parse_url(url)?, body.to_vec())
        }
        // https://core.telegram.org/bots/api#making-requests
        Channel::Telegram { token, chat } => {
            let url = append_segments(&bases.telegram, &[&format!("bot{token}"), "sendMessage"])?;
            json_request(url, with_field(body, "chat_id", chat)?)
        }
        // https://docs.ntfy.sh/publish/#publish-as-json
        Channel::Ntfy { url, token } => {
            let (base, topic) = split_topic(url)?;
            let mut request = json_request(base, with_field(body, "topic", &topic)?);
            if let Some(token) = token {
                request.headers.push((header::AUTHORIZATION, secret_value(&format!("Bearer {token}"))?));
            }
            request
        }
        // https://developer.pagerduty.com/docs/events-api-v2/trigger-events/
        Channel::PagerDuty { key } => {
            let url = append_segments(&bases.pagerduty, &["v2", "enqueue"])?;
            let (body, follow_up) = split_follow_up(body)?;
            let mut request = json_request(url.clone(), with_field(&body, "routing_key", key)?);
            if let Some(follow_up) = follow_up {
                request.follow_up = Some(Box::new(json_request(url, with_field(&follow_up, "routing_key", key)?)));
            }
            request
        }
    };
    Ok(Some(request))
}

/// Builds the request of a signed webhook. While a new secret is pending, both secrets sign it.
///
/// # Errors
/// [`DeliveryError::InvalidSetting`] if the address or the secret can't be parsed.
pub(crate) fn signed_request(
    url: &str,
    secrets: &SigningSecrets,
    body: &[u8],
    metadata: AttemptMetadata,
) -> Result<ChannelRequest, DeliveryError> {
    let parse = |text: &str| SigningSecret::parse(text).map_err(|_| DeliveryError::InvalidSetting("secret"));
    let AttemptMetadata { delivery, at } = metadata;
    let active = parse(secrets.active(at))?;
    let pending = secrets.pending(at).map(parse).transpose()?;
    let mut request = json_request(parse_url(url)?, body.to_vec());
    let headers = signature::signature_headers(&active, pending.as_ref(), delivery, at, body);
    for (name, value) in headers.ok_or(DeliveryError::InvalidSetting("message"))? {
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| DeliveryError::InvalidSetting("event"))?;
        let value = HeaderValue::try_from(value).map_err(|_| DeliveryError::InvalidSetting("event"))?;
        request.headers.push((name, value));
    }
    Ok(request)
}

/// Host and port of a channel's requests, which decide which pools they use; `None` for mail.
pub(crate) fn receiver_host(channel: &Channel, bases: &ServiceUrls) -> Option<String> {
    match channel {
        Channel::Email { .. } => None,
        Channel::Webhook { url, .. }
        | Channel::Slack { url }
        | Channel::Discord { url }
        | Channel::Teams { url }
        | Channel::Ntfy { url, .. } => Some(host_of(url)),
        Channel::Telegram { .. } => Some(host_of(bases.telegram.as_str())),
        Channel::PagerDuty { .. } => Some(host_of(bases.pagerduty.as_str())),
    }
}

/// Normalized host and port of a URL; empty if it can't be parsed.
pub(crate) fn host_of(url: &str) -> String {
    let parts = Url::parse(url).ok();
    let parts = parts.as_ref().and_then(|url| Some((url.host_str()?, url.port_or_known_default()?)));
    parts.map(|(host, port)| format!("{host}:{port}")).unwrap_or_default()
}

/// Credentials of a channel that must be redacted even if the service echoes them.
pub(crate) fn redacted_values(channel: &Channel) -> Vec<&str> {
    match channel {
        Channel::Telegram { token, .. } => vec![token],
        Channel::Ntfy { token, .. } => token.iter().map(String::as_str).collect(),
        Channel::PagerDuty { key } => vec![key],
        Channel::Email { .. }
        | Channel::Webhook { .. }
        | Channel::Slack { .. }
        | Channel::Discord { .. }
        | Channel::Teams { .. } => Vec::new(),
    }
}

fn json_request(url: Url, body: Vec<u8>) -> ChannelRequest {
    ChannelRequest { url, headers: Vec::new(), body: Bytes::from(body), follow_up: None }
}

fn parse_url(text: &str) -> Result<Url, DeliveryError> {
    Url::parse(text).map_err(|_| DeliveryError::InvalidSetting("address"))
}

/// Appends path segments to a base URL, percent-encoding them as needed.
fn append_segments(base: &Url, segments: &[&str]) -> Result<Url, DeliveryError> {
    let mut url = base.clone();
    url.path_segments_mut().map_err(|()| DeliveryError::InvalidSetting("address"))?.pop_if_empty().extend(segments);
    Ok(url)
}

/// Splits an ntfy topic's URL into the base URL and the topic.
fn split_topic(text: &str) -> Result<(Url, String), DeliveryError> {
    let invalid = || DeliveryError::InvalidSetting("topic");
    let mut url = parse_url(text)?;
    let last = url.path_segments().and_then(|mut segments| segments.rfind(|segment| !segment.is_empty()));
    let topic = last.ok_or_else(invalid)?.to_owned();
    url.path_segments_mut().map_err(|()| invalid())?.pop_if_empty().pop();
    url.set_query(None);
    url.set_fragment(None);
    Ok((url, topic))
}

/// Adds one field to a JSON message.
fn with_field(body: &[u8], name: &str, value: &str) -> Result<Vec<u8>, DeliveryError> {
    let mut fields: Map<String, Value> =
        serde_json::from_slice(body).map_err(|_| DeliveryError::InvalidSetting("message"))?;
    fields.insert(name.to_owned(), Value::String(value.to_owned()));
    serde_json::to_vec(&fields).map_err(|_| DeliveryError::InvalidSetting("message"))
}

/// Splits a PagerDuty message into its event and the optional follow-up event.
fn split_follow_up(body: &[u8]) -> Result<(Vec<u8>, Option<Vec<u8>>), DeliveryError> {
    let invalid = |_| DeliveryError::InvalidSetting("message");
    let mut fields: Map<String, Value> = serde_json::from_slice(body).map_err(invalid)?;
    let follow_up = fields.shift_remove(pagerduty::FOLLOW_UP_FIELD);
    let bytes = |value: &Value| serde_json::to_vec(value).map_err(invalid);
    Ok((bytes(&Value::Object(fields))?, follow_up.as_ref().map(bytes).transpose()?))
}

fn secret_value(text: &str) -> Result<HeaderValue, DeliveryError> {
    let mut value = HeaderValue::from_str(text).map_err(|_| DeliveryError::InvalidSetting("token"))?;
    value.set_sensitive(true);
    Ok(value)
}

/// Milliseconds that the receiver asks us to wait (`Retry-After`, RFC 9110 section 10.2.3).
pub(super) fn retry_after(kind: ChannelKind, response: &ChannelResponse, now: Timestamp) -> Option<i64> {
    let seconds = |seconds: i64| seconds.max(0).saturating_mul(1_000);
    if let Some(text) = response.retry_after.as_deref() {
        let at = || {
            let at = httpdate::parse_http_date(text).ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
            i64::try_from(at.as_millis()).ok().map(|at| Timestamp::from_millis(at).since(now).max(0))
        };
        return text.trim().parse().map(seconds).ok().or_else(at);
    }
    if kind != ChannelKind::Telegram {
        return None;
    }
    // https://core.telegram.org/bots/api#responseparameters
    let body: Value = serde_json::from_str(&response.body).ok()?;
    body.pointer("/parameters/retry_after")?.as_i64().map(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    const OLD: &str = "whsec_BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcH";

    fn request_for(channel: &Channel, body: &str) -> ChannelRequest {
        let bases = ServiceUrls {
            telegram: Url::parse("https://api.telegram.org").unwrap(),
            pagerduty: Url::parse("https://events.pagerduty.com/").unwrap(),
        };
        let delivery = "dlv_0000000000000000000000000a".parse().unwrap();
        let at = Timestamp::from_millis(1_795_783_560_999);
        let metadata = AttemptMetadata { delivery, at };
        channel_request(channel, body.as_bytes(), metadata, &bases).unwrap().unwrap()
    }

    fn header(request: &ChannelRequest, name: &str) -> Option<String> {
        let header = request.headers.iter().find(|(known, _)| known.as_str() == name);
        header.map(|(_, value)| value.to_str().unwrap().to_owned())
    }

    #[test]
    fn each_channels_request_has_the_documented_url_and_body() {
        let plain = "https://hooks.example/T/B?x=1".to_owned();
        for (channel, url, body) in [
            (Channel::Slack { url: plain.clone() }, plain.as_str(), r#"{"a":1}"#),
            (Channel::Discord { url: plain.clone() }, plain.as_str(), r#"{"a":1}"#),
            (Channel::Teams { url: plain.clone() }, plain.as_str(), r#"{"a":1}"#),
            (
                Channel::Telegram { token: "12:A/../b".into(), chat: "@ops".into() },
                "https://api.telegram.org/bot12:A%2F..%2Fb/sendMessage",
                r#"{"a":1,"chat_id":"@ops"}"#,
            ),
            (
                Channel::Ntfy { url: "https://ntfy.example/in/alerts/?x".into(), token: Some("tk_1".into()) },
                "https://ntfy.example/in",
                r#"{"a":1,"topic":"alerts"}"#,
            ),
            (
                Channel::Ntfy { url: "https://ntfy.sh/alerts".into(), token: None },
                "https://ntfy.sh/",
                r#"{"a":1,"topic":"alerts"}"#,
            ),
            (
                Channel::PagerDuty { key: "R0".into() },
                "https://events.pagerduty.com/v2/enqueue",
                r#"{"a":1,"routing_key":"R0"}"#,
            ),
        ] {
            let request = request_for(&channel, r#"{"a":1}"#);
            assert_eq!((request.url.as_str(), &request.body[..]), (url, body.as_bytes()));
            let token = matches!(&channel, Channel::Ntfy { token: Some(_), .. }).then_some("Bearer tk_1");
            assert_eq!(header(&request, "authorization").as_deref(), token);
            assert_eq!(header(&request, "webhook-signature"), None, "only webhooks are signed");
        }
    }

    #[test]
    fn a_follow_up_event_is_a_request_of_its_own() {
        let request = request_for(&Channel::PagerDuty { key: "R0".into() }, r#"{"a":1,"then":{"b":2},"c":3}"#);
        assert_eq!(&request.body[..], br#"{"a":1,"c":3,"routing_key":"R0"}"#);
        let follow_up = request.follow_up.unwrap();
        assert_eq!((follow_up.url, &follow_up.body[..]), (request.url, &br#"{"b":2,"routing_key":"R0"}"#[..]));
        assert!(follow_up.follow_up.is_none());
    }

    #[test]
    fn both_secrets_sign_until_the_old_one_expires() {
        let url = "https://a.example/in".to_owned();
        let signatures = |newest: &str, previous: Option<i64>| {
            let previous = previous.map(|until| (OLD.to_owned(), Timestamp::from_millis(until)));
            let secret = SigningSecrets { newest: newest.to_owned(), previous };
            let request = request_for(&Channel::Webhook { url: url.clone(), secret }, r#"{"event":"went-down"}"#);
            assert_eq!(header(&request, "x-service-event").as_deref(), Some("went-down"));
            let standard = header(&request, "webhook-signature").unwrap();
            (header(&request, "x-service-signature").unwrap(), standard.split(' ').count())
        };
        let [new, old] = [SECRET, OLD].map(|secret| signatures(secret, None).0);
        assert_eq!(signatures(SECRET, Some(1_795_783_560_999)), (new, 1), "its overlap is over");
        assert_eq!(signatures(SECRET, Some(1_795_783_561_000)), (old, 2), "not activated yet");
    }

    #[test]
    fn hosts_are_distinguished_by_port() {
        assert_eq!(host_of("https://A.example/x"), "a.example:443");
        assert_eq!(host_of("http://[::1]:8080/"), "[::1]:8080");
        assert_eq!(host_of("nothing"), "");
    }
}
