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

/// Builds the request that carries `letter`; `None` if the channel doesn't use HTTP.
///
/// # Errors
/// [`DeliveryError::InvalidSetting`] if the destination's settings don't form a valid request.
pub(crate) fn channel_request(
    channel: &Channel,
    letter: &[u8],
    envelope: AttemptMetadata,
    bases: &ServiceUrls,
) -> Result<Option<ChannelRequest>, DeliveryError> {
    let made = match channel {
        Channel::Email { .. } => return Ok(None),
        Channel::Webhook { url, secret } => signed_request(url, secret, letter, envelope)?,
        // https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks
        // https://discord.com/developers/docs/resources/webhook#execute-webhook
        Channel::Slack { url } | Channel::Discord { url } | Channel::Teams { url } => {
            json_request(parse_url(url)?, letter.to_vec())
        }
        // https://core.telegram.org/bots/api#making-requests
        Channel::Telegram { token, chat } => {
            let url = append_segments(&bases.telegram, &[&format!("bot{token}"), "sendMessage"])?;
            json_request(url, with_field(letter, "chat_id", chat)?)
        }
        // https://docs.ntfy.sh/publish/#publish-as-json
        Channel::Ntfy { url, token } => {
            let (base, topic) = split_topic(url)?;
            let mut call = json_request(base, with_field(letter, "topic", &topic)?);
            if let Some(token) = token {
                call.headers.push((header::AUTHORIZATION, secret_value(&format!("Bearer {token}"))?));
            }
            call
        }
        // https://developer.pagerduty.com/docs/events-api-v2/trigger-events/
        Channel::PagerDuty { key } => {
            let url = append_segments(&bases.pagerduty, &["v2", "enqueue"])?;
            let (letter, then) = split_follow_up(letter)?;
            let mut call = json_request(url.clone(), with_field(&letter, "routing_key", key)?);
            if let Some(then) = then {
                call.follow_up = Some(Box::new(json_request(url, with_field(&then, "routing_key", key)?)));
            }
            call
        }
    };
    Ok(Some(made))
}

/// Builds the request of a signed webhook. While a new secret is pending, both secrets sign it.
///
/// # Errors
/// [`DeliveryError::InvalidSetting`] if the address or the secret can't be parsed.
pub(crate) fn signed_request(
    url: &str,
    secrets: &SigningSecrets,
    letter: &[u8],
    envelope: AttemptMetadata,
) -> Result<ChannelRequest, DeliveryError> {
    let read = |text: &str| SigningSecret::parse(text).map_err(|_| DeliveryError::InvalidSetting("secret"));
    let AttemptMetadata { delivery, at } = envelope;
    let active = read(secrets.active(at))?;
    let pending = secrets.pending(at).map(read).transpose()?;
    let mut call = json_request(parse_url(url)?, letter.to_vec());
    let headers = signature::signature_headers(&active, pending.as_ref(), delivery, at, letter);
    for (name, value) in headers.ok_or(DeliveryError::InvalidSetting("letter"))? {
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| DeliveryError::InvalidSetting("event"))?;
        let value = HeaderValue::try_from(value).map_err(|_| DeliveryError::InvalidSetting("event"))?;
        call.headers.push((name, value));
    }
    Ok(call)
}

/// Host and port of a channel's requests, which decide whose slots they use; `None` for mail.
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
    let wrong = || DeliveryError::InvalidSetting("topic");
    let mut url = parse_url(text)?;
    let last = url.path_segments().and_then(|mut segments| segments.rfind(|segment| !segment.is_empty()));
    let topic = last.ok_or_else(wrong)?.to_owned();
    url.path_segments_mut().map_err(|()| wrong())?.pop_if_empty().pop();
    url.set_query(None);
    url.set_fragment(None);
    Ok((url, topic))
}

/// Adds one field to a JSON message.
fn with_field(letter: &[u8], name: &str, value: &str) -> Result<Vec<u8>, DeliveryError> {
    let mut fields: Map<String, Value> =
        serde_json::from_slice(letter).map_err(|_| DeliveryError::InvalidSetting("letter"))?;
    fields.insert(name.to_owned(), Value::String(value.to_owned()));
    serde_json::to_vec(&fields).map_err(|_| DeliveryError::InvalidSetting("letter"))
}

/// Splits a PagerDuty message into its event and the optional follow-up event.
fn split_follow_up(letter: &[u8]) -> Result<(Vec<u8>, Option<Vec<u8>>), DeliveryError> {
    let fault = |_| DeliveryError::InvalidSetting("letter");
    let mut fields: Map<String, Value> = serde_json::from_slice(letter).map_err(fault)?;
    let then = fields.shift_remove(pagerduty::FOLLOW_UP_FIELD);
    let bytes = |value: &Value| serde_json::to_vec(value).map_err(fault);
    Ok((bytes(&Value::Object(fields))?, then.as_ref().map(bytes).transpose()?))
}

fn secret_value(text: &str) -> Result<HeaderValue, DeliveryError> {
    let mut value = HeaderValue::from_str(text).map_err(|_| DeliveryError::InvalidSetting("token"))?;
    value.set_sensitive(true);
    Ok(value)
}

/// Milliseconds that the receiver asks us to wait (`Retry-After`, RFC 9110 section 10.2.3).
pub(super) fn retry_after(kind: ChannelKind, answer: &ChannelResponse, now: Timestamp) -> Option<i64> {
    let seconds = |seconds: i64| seconds.max(0).saturating_mul(1_000);
    if let Some(text) = answer.retry_after.as_deref() {
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
    let told: Value = serde_json::from_str(&answer.body).ok()?;
    told.pointer("/parameters/retry_after")?.as_i64().map(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    const OLD: &str = "whsec_BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcH";

    fn of(channel: &Channel, letter: &str) -> ChannelRequest {
        let bases = ServiceUrls {
            telegram: Url::parse("https://api.telegram.org").unwrap(),
            pagerduty: Url::parse("https://events.pagerduty.com/").unwrap(),
        };
        let delivery = "dlv_0000000000000000000000000a".parse().unwrap();
        let at = Timestamp::from_millis(1_795_783_560_999);
        let envelope = AttemptMetadata { delivery, at };
        channel_request(channel, letter.as_bytes(), envelope, &bases).unwrap().unwrap()
    }

    fn header(call: &ChannelRequest, name: &str) -> Option<String> {
        let found = call.headers.iter().find(|(known, _)| known.as_str() == name);
        found.map(|(_, value)| value.to_str().unwrap().to_owned())
    }

    #[test]
    fn each_service_gets_what_it_documents() {
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
            let call = of(&channel, r#"{"a":1}"#);
            assert_eq!((call.url.as_str(), &call.body[..]), (url, body.as_bytes()));
            let token = matches!(&channel, Channel::Ntfy { token: Some(_), .. }).then_some("Bearer tk_1");
            assert_eq!(header(&call, "authorization").as_deref(), token);
            assert_eq!(header(&call, "webhook-signature"), None, "only webhooks are signed");
        }
    }

    #[test]
    fn an_event_that_goes_after_another_is_posted_apart() {
        let call = of(&Channel::PagerDuty { key: "R0".into() }, r#"{"a":1,"then":{"b":2},"c":3}"#);
        assert_eq!(&call.body[..], br#"{"a":1,"c":3,"routing_key":"R0"}"#);
        let then = call.follow_up.unwrap();
        assert_eq!((then.url, &then.body[..]), (call.url, &br#"{"b":2,"routing_key":"R0"}"#[..]));
        assert!(then.follow_up.is_none());
    }

    #[test]
    fn a_new_secret_signs_beside_the_old_one_until_the_old_ones_time_is_up() {
        let url = "https://a.example/in".to_owned();
        let signatures = |present: &str, before: Option<i64>| {
            let before = before.map(|until| (OLD.to_owned(), Timestamp::from_millis(until)));
            let secret = SigningSecrets { newest: present.to_owned(), previous: before };
            let call = of(&Channel::Webhook { url: url.clone(), secret }, r#"{"event":"went-down"}"#);
            assert_eq!(header(&call, "x-service-event").as_deref(), Some("went-down"));
            let standard = header(&call, "webhook-signature").unwrap();
            (header(&call, "x-service-signature").unwrap(), standard.split(' ').count())
        };
        let [new, old] = [SECRET, OLD].map(|secret| signatures(secret, None).0);
        assert_eq!(signatures(SECRET, Some(1_795_783_560_999)), (new, 1), "its overlap is over");
        assert_eq!(signatures(SECRET, Some(1_795_783_561_000)), (old, 2), "not activated yet");
    }

    #[test]
    fn hosts_are_told_apart_with_their_ports() {
        assert_eq!(host_of("https://A.example/x"), "a.example:443");
        assert_eq!(host_of("http://[::1]:8080/"), "[::1]:8080");
        assert_eq!(host_of("nothing"), "");
    }
}
