//! Validation of delivery URLs: http and https, no credentials in the URL, and the destination type that
//! matches the service.

use std::net::{IpAddr, Ipv4Addr};

use ::url::Url;
use parallax_primitives::host::Host;

use super::ChannelKind;
use super::mask::unmasked;
use crate::text;
use crate::validation::Rule;

/// Validates an http or https URL without user info, whose host `refused` does not reject. A URL of a service
/// that expects another format than `kind` is rejected with the name of the right type.
///
/// # Errors
/// The rule that the text breaks.
pub fn read_url(
    url: &str,
    kind: ChannelKind,
    refused: &dyn Fn(IpAddr) -> Option<&'static str>,
) -> Result<String, Rule> {
    let read = public_url(url, refused)?;
    let Ok(parsed) = Url::parse(&read) else { return Err("must be an http or https URL".to_owned()) };
    let host = parsed.host_str().unwrap_or_default().trim_end_matches('.');
    match service_of_url(host, parsed.path()) {
        Some((name, Some(theirs))) if theirs != kind => {
            Err(format!("is an address of {name}: use type {}", theirs.name()))
        }
        Some((name, None)) => Err(format!("is an address of {name}, which is not supported")),
        Some(_) | None => Ok(read),
    }
}

/// Validates an http or https URL without user info, whose host `refused` does not reject. `refused` returns
/// a name for the kind of a forbidden address.
///
/// # Errors
/// The rule that the text breaks.
pub fn public_url(url: &str, refused: &dyn Fn(IpAddr) -> Option<&'static str>) -> Result<String, Rule> {
    let address = text::parse_web_url(unmasked(url)?)?;
    if address.user_info.is_some() {
        return Err("must not contain a user name or password".to_owned());
    }
    match literal_address(&address.host).and_then(refused) {
        Some(class) => Err(format!("must not be a {class} address")),
        None => Ok(address.url),
    }
}

/// Returns the address that a host stands for: the literal, and for names that never leave the host or a private
/// network an address of that kind. Where the guard would refuse to connect, the URL is refused when it is entered;
/// where the operator allows private networks, `refused` accepts that address and so the name.
fn literal_address(host: &str) -> Option<IpAddr> {
    match Host::parse(&text::ascii_host(host)).ok()? {
        Host::Ip(ip) => Some(ip),
        Host::Name(name) if name.is_localhost() => Some(Ipv4Addr::LOCALHOST.into()),
        Host::Name(name) if name.is_private() => Some(Ipv4Addr::new(10, 0, 0, 1).into()),
        Host::Name(_) => None,
    }
}

/// Validates a URL whose last segment is an ntfy topic.
pub(super) fn read_topic(url: String) -> Result<String, Rule> {
    let no_topic = || "must end with the topic, as in https://ntfy.sh/alerts".to_owned();
    let parsed = Url::parse(&url).map_err(|_| no_topic())?;
    let topic = parsed.path_segments().and_then(|mut parts| parts.next_back()).unwrap_or_default();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if (1..=64).contains(&topic.len()) && topic.bytes().all(is_plain) && parsed.query().is_none() {
        Ok(url)
    } else {
        Err(no_topic())
    }
}

/// The service that a URL belongs to, if known, and its destination type, if there is one.
fn service_of_url(host: &str, path: &str) -> Option<(&'static str, Option<ChannelKind>)> {
    let host = host.to_ascii_lowercase();
    let below = |domain: &str| host.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    // A Teams workflow webhook; other flows have triggers with other names.
    let is_flow =
        path.contains("/triggers/manual/paths/invoke") && (below("logic.azure.com") || below("api.powerplatform.com"));
    // Mattermost runs under any host name: an id of 26 letters and digits identifies it.
    let is_mattermost = path
        .strip_prefix("/hooks/")
        .is_some_and(|id| id.len() == 26 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()));
    if below("hooks.slack.com") || below("hooks.slack-gov.com") {
        Some(("Slack", Some(ChannelKind::Slack)))
    } else if (below("discord.com") || below("discordapp.com")) && path.starts_with("/api/") {
        // Discord accepts Slack's format at a separate URL.
        let kind = if path.ends_with("/slack") { ChannelKind::Slack } else { ChannelKind::Discord };
        Some(("Discord", Some(kind)))
    } else if below("webhook.office.com") || is_flow {
        Some(("Microsoft Teams", Some(ChannelKind::Teams)))
    } else if below("chat.googleapis.com") {
        Some(("Google Chat", None))
    } else if below("api.telegram.org") {
        Some(("Telegram", Some(ChannelKind::Telegram)))
    } else if host == "ntfy.sh" {
        Some(("ntfy", Some(ChannelKind::Ntfy)))
    } else if below("events.pagerduty.com") || below("events.eu.pagerduty.com") {
        Some(("PagerDuty", Some(ChannelKind::PagerDuty)))
    } else if is_mattermost {
        Some(("Mattermost", Some(ChannelKind::Slack)))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(address: IpAddr) -> Option<&'static str> {
        match address {
            IpAddr::V4(v4) if v4.is_loopback() => Some("loopback"),
            IpAddr::V4(v4) if v4.is_private() => Some("private"),
            IpAddr::V6(v6) if v6.is_loopback() => Some("loopback"),
            _ => None,
        }
    }

    fn webhook(url: &str) -> Result<String, Rule> {
        read_url(url, ChannelKind::Webhook, &judge)
    }

    #[test]
    fn an_address_is_public_http_without_secrets() {
        for good in ["https://hooks.example.com/a?b=c", "http://example.com:8080/", "https://8.8.8.8/x"] {
            assert_eq!(webhook(good).as_deref(), Ok(good));
        }
        assert_eq!(webhook("example.com/hook").as_deref(), Ok("https://example.com/hook"));
        for (bad, rule) in [
            ("ftp://example.com", "must be an http or https URL"),
            ("https://user:pass@example.com/", "must not contain a user name or password"),
            ("https://user@example.com/", "must not contain a user name or password"),
            ("http://127.0.0.1/", "must not be a loopback address"),
            ("http://2130706433/", "must not be a loopback address"),
            ("http://0x7f.1/", "must not be a loopback address"),
            ("http://[::1]:9/", "must not be a loopback address"),
            ("http://LocalHost/", "must not be a loopback address"),
            ("http://a.localhost./", "must not be a loopback address"),
            ("http://10.1.2.3/", "must not be a private address"),
            ("http://012.1.2.3/", "must not be a private address"),
            ("http://vault.internal/", "must not be a private address"),
            ("http://NAS.local./", "must not be a private address"),
            ("https://a\r\nb.example", "must not contain control characters"),
            ("https://example.com\\@127.0.0.1/", "must not contain backslashes"),
            ("https://example.com/***", "is masked: send the full value, or omit the field to keep it"),
        ] {
            assert_eq!(webhook(bad).unwrap_err(), rule, "{bad}");
        }
        let long = format!("https://example.com/{}", "a".repeat(1980));
        assert!(webhook(&long).is_ok() && webhook(&format!("{long}a")).is_err());
    }

    #[test]
    fn a_private_name_is_accepted_where_private_addresses_are() {
        for url in ["http://hook.lan/x", "http://vault.internal/", "http://NAS.local./", "http://localhost:9/"] {
            assert!(webhook(url).is_err(), "{url}");
            assert_eq!(read_url(url, ChannelKind::Webhook, &|_| None).as_deref(), Ok(url));
        }
    }

    #[test]
    fn a_chat_url_is_rejected_with_the_right_type() {
        for (url, kind) in [
            ("https://hooks.slack.com/services/T0/B0/x", "slack"),
            ("https://discord.com/api/webhooks/1/x", "discord"),
            ("https://ptb.discord.com/api/v10/webhooks/1/x", "discord"),
            ("https://discordapp.com/api/webhooks/1/x/slack", "slack"),
            ("https://shop.webhook.office.com/webhookb2/x", "teams"),
            ("https://prod-1.westeurope.logic.azure.com:443/workflows/x/triggers/manual/paths/invoke?sig=y", "teams"),
            ("https://api.telegram.org/bot1:x/sendMessage", "telegram"),
            ("https://ntfy.sh/alerts", "ntfy"),
            ("https://events.pagerduty.com/v2/enqueue", "pagerduty"),
            ("https://chat.shop.example/hooks/abcdefghijklmnopqrstuvwxyz", "slack"),
        ] {
            let rule = webhook(url).unwrap_err();
            assert!(rule.ends_with(&format!(": use type {kind}")), "{url}: {rule}");
            if let Some(right) = ChannelKind::ALL.into_iter().find(|it| it.name() == kind) {
                assert!(read_url(url, right, &judge).is_ok(), "{url}");
            }
        }
        assert!(webhook("https://chat.googleapis.com/v1/spaces/x").unwrap_err().contains("Google Chat"));
        for free in ["https://notslack.com/x", "https://evil-discord.com/api/x", "https://a.example/hooks/x"] {
            assert!(webhook(free).is_ok(), "{free}");
        }
    }

    #[test]
    fn a_topic_ends_its_address() {
        let topic = |url: &str| read_topic(url.to_owned()).is_ok();
        assert!(topic("https://ntfy.sh/alerts") && topic("https://push.example/below/a_b-1"));
        for bad in ["https://ntfy.sh/", "https://ntfy.sh", "https://ntfy.sh/a%2fb", "https://ntfy.sh/a?b=c"] {
            assert!(!topic(bad), "{bad}");
        }
    }
}
