//! Subscription requests of visitors: validation, and normalization of contacts so that duplicates are found.

use std::collections::BTreeSet;
use std::net::IpAddr;

use ::url::Url;

use crate::destination::delivery_url::public_url;
use crate::id::MonitorId;
use crate::text;
use crate::validation::{Rule, ValidationErrors};

/// Addresses that webhooks may not point to: returns the kind of a forbidden address, else none.
pub type ForbiddenAddress<'a> = &'a dyn Fn(IpAddr) -> Option<&'static str>;

/// Mail providers that ignore dots in the local part.
const DOT_IGNORING_HOSTS: [&str; 2] = ["gmail.com", "googlemail.com"];

/// A subscription request as sent. Exactly one of the two contacts is given.
#[derive(Debug, Clone, Default)]
pub struct SubscriptionRequest {
    /// Email address.
    pub email: Option<String>,
    /// Webhook URL.
    pub url: Option<String>,
    /// Ids of monitors; none means the whole page.
    pub monitors: Option<Vec<String>>,
}

/// A valid subscription request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValidSubscription {
    /// Contact.
    pub address: SubscriberAddress,
    /// Monitors; none means the whole page.
    pub monitors: Option<Vec<MonitorId>>,
}

/// A subscriber's address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SubscriberAddress {
    /// Email address with its host in lower case.
    Email(String),
    /// Webhook.
    Webhook {
        /// URL.
        url: String,
        /// Host of the URL.
        host: String,
    },
}

impl SubscriptionRequest {
    /// Validates the request. `on_page` are the page's monitors; `refused` returns the kind of an address
    /// that webhooks may not point to.
    ///
    /// # Errors
    /// Every field that breaks a rule: `email`, `url`, `monitors`.
    pub fn validate(
        &self,
        on_page: &BTreeSet<MonitorId>,
        refused: ForbiddenAddress<'_>,
    ) -> Result<ValidSubscription, ValidationErrors> {
        let mut faults = ValidationErrors::new();
        let address = match (&self.email, &self.url) {
            (Some(email), None) => faults.record("email", read_email(email)),
            (None, Some(url)) => faults.record("url", read_webhook(url, refused)),
            (None, None) => faults.record("email", Err("is required".to_owned())),
            (Some(_), Some(_)) => faults.record("url", Err("must not be sent together with email".to_owned())),
        };
        let monitors = faults.record("monitors", read_monitors(self.monitors.as_deref(), on_page));
        match (address, monitors) {
            (Some(address), Some(monitors)) => Ok(ValidSubscription { address, monitors }),
            _ => Err(faults),
        }
    }
}

impl SubscriberAddress {
    /// Normalized contact for detecting duplicates: its kind, and the address in one spelling.
    pub fn normalized(&self) -> String {
        match self {
            Self::Email(email) => format!("email:{}", email.to_lowercase()),
            Self::Webhook { url, .. } => format!("webhook:{url}"),
        }
    }

    /// The person behind the address, for rate limits. Addresses of one mailbox are the same: a tag after `+`
    /// is removed, and so are dots where the provider ignores them.
    pub fn mailbox_key(&self) -> String {
        let Self::Email(email) = self else { return self.normalized() };
        let email = email.to_lowercase();
        let (name, host) = email.rsplit_once('@').unwrap_or((&email, ""));
        let name = name.split('+').next().filter(|name| !name.is_empty()).unwrap_or(name);
        if DOT_IGNORING_HOSTS.contains(&host) {
            return format!("email:{}@gmail.com", name.replace('.', ""));
        }
        format!("email:{name}@{host}")
    }
}

/// Validates the chosen monitors; none means the whole page.
///
/// # Errors
/// The rule that the list breaks.
pub fn read_monitors(ids: Option<&[String]>, on_page: &BTreeSet<MonitorId>) -> Result<Option<Vec<MonitorId>>, Rule> {
    let Some(ids) = ids else { return Ok(None) };
    let mut found = BTreeSet::new();
    for id in ids {
        let id = id.parse().ok().filter(|id| on_page.contains(id));
        found.insert(id.ok_or_else(|| "must be monitors of this page".to_owned())?);
    }
    if found.is_empty() {
        Err("must name at least one monitor".to_owned())
    } else {
        Ok(Some(found.into_iter().collect()))
    }
}

/// An email address in plain ASCII, which every mail server accepts, without characters that have a meaning
/// in a header.
fn read_email(text: &str) -> Result<SubscriberAddress, Rule> {
    let email = text::parse_email(text)?;
    let no_email = || "must be an email address".to_owned();
    let (name, host) = email.rsplit_once('@').ok_or_else(no_email)?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-/=?^_`{|}~.".contains(&byte);
    let has_dots_inside = !name.starts_with('.') && !name.ends_with('.') && !name.contains("..");
    let host = text::domain(host)?;
    if name.len() <= 64 && name.bytes().all(is_plain) && has_dots_inside && host.contains('.') {
        Ok(SubscriberAddress::Email(format!("{name}@{host}")))
    } else {
        Err(no_email())
    }
}

/// A webhook URL that a stranger may enter, as far as its text can be validated.
fn read_webhook(text: &str, refused: ForbiddenAddress<'_>) -> Result<SubscriberAddress, Rule> {
    let address = public_url(text, refused)?;
    let mut url = Url::parse(&address).map_err(|_| "must be an http or https URL".to_owned())?;
    url.set_fragment(None);
    let host = url.host_str().unwrap_or_default().to_owned();
    Ok(SubscriberAddress::Webhook { url: url.into(), host })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page() -> BTreeSet<MonitorId> {
        [1, 2].map(MonitorId::from_u128).into()
    }

    fn validate(
        email: Option<&str>,
        url: Option<&str>,
        monitors: Option<&[&str]>,
    ) -> Result<ValidSubscription, String> {
        let owned = |text: &str| text.to_owned();
        let monitors = monitors.map(|ids| ids.iter().map(|id| owned(id)).collect());
        let request = SubscriptionRequest { email: email.map(owned), url: url.map(owned), monitors };
        request
            .validate(&page(), &|address| address.is_loopback().then_some("loopback"))
            .map_err(|faults| faults.to_string())
    }

    #[test]
    fn an_email_address_is_plain_and_has_a_public_domain() {
        for (email, fits) in [
            ("ann@example.com", true),
            (" Ann.B+x@Example.COM ", true),
            ("o'neil@example.com", true),
            ("ann@localhost", false),
            ("ann@[127.0.0.1]", false),
            ("ann@127.0.0.1", false),
            ("\"a b\"@example.com", false),
            ("ann,bob@example.com", false),
            ("<ann@example.com>", false),
            ("ann@example.com\r\nBcc: bob@example.com", false),
            (".ann@example.com", false),
            ("a..b@example.com", false),
            ("änn@example.com", false),
        ] {
            assert_eq!(validate(Some(email), None, None).is_ok(), fits, "{email:?}");
        }
        let valid = validate(Some("Ann@EXAMPLE.com"), None, None).unwrap();
        assert_eq!(valid.address, SubscriberAddress::Email("Ann@example.com".to_owned()));
    }

    #[test]
    fn a_webhook_needs_a_public_url() {
        for (url, fits) in [
            ("https://hooks.example/a?b=c", true),
            ("http://8.8.8.8:8080/", true),
            ("http://127.0.0.1/", false),
            ("http://0x7f000001/", false),
            ("http://2130706433/", false),
            ("http://localhost/", false),
            ("http://a.localhost/", false),
            ("https://ann:secret@hooks.example/", false),
            ("ftp://hooks.example/", false),
            ("gopher:x", false),
        ] {
            assert_eq!(validate(None, Some(url), None).is_ok(), fits, "{url}");
        }
    }

    #[test]
    fn spellings_of_one_contact_are_normalized_alike() {
        let plain = |email, url| validate(email, url, None).unwrap().address.normalized();
        assert_eq!(plain(Some("Ann@Example.com"), None), plain(Some(" ann@example.COM"), None));
        assert_eq!(plain(None, Some("HOOKS.example#x")), plain(None, Some("https://hooks.example:443/")));
        assert_ne!(plain(None, Some("hooks.example/a")), plain(None, Some("hooks.example/A")));
        let receiver = |email| validate(Some(email), None, None).unwrap().address.mailbox_key();
        assert_eq!(receiver("ann+1@example.com"), receiver("Ann+2@example.com"));
        assert_eq!(receiver("a.nn+1@gmail.com"), receiver("ann@googlemail.com"));
        assert_ne!(receiver("a.nn@example.com"), receiver("ann@example.com"));
        assert_ne!(receiver("+1@example.com"), receiver("+2@example.com"));
    }

    #[test]
    fn one_contact_and_monitors_of_the_page_are_required() {
        let one = MonitorId::from_u128(1).to_string();
        let foreign = MonitorId::from_u128(9).to_string();
        let error = |result: Result<ValidSubscription, String>| result.unwrap_err();
        assert_eq!(error(validate(None, None, None)), "email is required");
        assert_eq!(
            error(validate(Some("a@b.example"), Some("b.example"), None)),
            "url must not be sent together with email"
        );
        for ids in [&[foreign.as_str()][..], &[one.as_str(), "x"]] {
            assert_eq!(error(validate(Some("a@b.example"), None, Some(ids))), "monitors must be monitors of this page");
        }
        assert_eq!(error(validate(Some("a@b.example"), None, Some(&[]))), "monitors must name at least one monitor");
        let valid = validate(Some("a@b.example"), None, Some(&[&one, &one])).unwrap();
        assert_eq!(valid.monitors, Some(vec![MonitorId::from_u128(1)]));
    }
}
