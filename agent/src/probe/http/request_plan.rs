//! A request to send: target, method, headers.

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, header};
use http_body_util::Full;
use parallax_dial::Host;
use parallax_protocol::{
    check::{WireHttpCheck, WireMethod as CheckMethod},
    result::WireFailure,
};
use percent_encoding::percent_decode_str;
use url::Url;

use super::cookies::CookieJar;
use crate::probe::facts::bad_target;

/// User agent of a check that sets none.
const USER_AGENT: HeaderValue =
    HeaderValue::from_static(concat!("Parallax/", env!("CARGO_PKG_VERSION"), " (uptime check)"));

/// Headers of the connection and headers derived from the request (RFC 9110, section 7.6.1), which can't be
/// set; so are all that begin with `proxy-`.
const RESERVED: [&str; 9] = [
    "connection",
    "content-length",
    "expect",
    "http2-settings",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Customer headers that describe the client, as every browser sends them: not secret, so they are sent to
/// every host. So are all that begin with `accept-`.
const NON_SECRET: [HeaderName; 3] = [header::USER_AGENT, header::ACCEPT, header::REFERER];

/// Headers that describe a body and are dropped with it.
const BODY_HEADERS: [HeaderName; 4] =
    [header::CONTENT_TYPE, header::CONTENT_ENCODING, header::CONTENT_LANGUAGE, header::CONTENT_LOCATION];

/// A request before it is sent.
#[derive(Clone)]
pub(super) struct RequestPlan {
    /// Without user info and fragment.
    pub(super) url: Url,
    pub(super) host: Host,
    pub(super) port: u16,
    pub(super) method: Method,
    /// The customer's headers, including credentials.
    own_headers: HeaderMap,
    /// The agent's own headers, sent on every hop: none of them is a secret.
    shared_headers: HeaderMap,
    /// The customer's value for `Host` on their host, if set.
    own_host: Option<HeaderValue>,
    /// The customer's host: their secret headers are sent nowhere else.
    customer_host: Host,
    /// True once a request of the check used TLS: from then on nothing secret is sent in plain text.
    was_sent_over_tls: bool,
    pub(super) body: Bytes,
    /// Cookies set by the responses so far.
    pub(super) cookies: CookieJar,
}

impl RequestPlan {
    /// Returns the first request of a check.
    ///
    /// # Errors
    /// [`WireFailure::BadTarget`] naming the rule that the URL or a header breaks.
    pub(super) fn from_check(check: &WireHttpCheck) -> Result<Self, WireFailure> {
        let mut url = Url::parse(&check.url).map_err(|_| bad_target("the URL can't be read"))?;
        let (host, port) = target_of(&url)?;
        let (mut own_headers, own_host) = own_headers(check)?;
        if let Some(credentials) = take_user_info(&mut url)?
            && !own_headers.contains_key(header::AUTHORIZATION)
        {
            own_headers.insert(header::AUTHORIZATION, credentials);
        }
        url.set_fragment(None);
        let method = method(check.method);
        let body = match check.body.as_ref() {
            Some(body) if takes_body(&method) => Bytes::copy_from_slice(body.reveal().as_bytes()),
            Some(_) | None => Bytes::new(),
        };
        let (home, was_private) = (host.clone(), url.scheme() == "https");
        let (shared_headers, cookies) = (HeaderMap::new(), CookieJar::default());
        Ok(Self {
            url,
            host,
            port,
            method,
            own_headers,
            shared_headers,
            own_host,
            customer_host: home,
            was_sent_over_tls: was_private,
            body,
            cookies,
        })
    }

    /// Sets additional headers, none of them a secret.
    pub(super) fn with_headers(self, headers: impl IntoIterator<Item = (HeaderName, HeaderValue)>) -> Self {
        Self { shared_headers: headers.into_iter().collect(), ..self }
    }

    /// Returns the same request to another address.
    ///
    /// # Errors
    /// [`WireFailure::BadTarget`] as for [`RequestPlan::from_check`].
    pub(super) fn redirected_to(&self, mut url: Url) -> Result<Self, WireFailure> {
        let (host, port) = target_of(&url)?;
        // Credentials come from the customer, never from a response.
        take_user_info(&mut url)?;
        url.set_fragment(None);
        let was_private = self.was_sent_over_tls || url.scheme() == "https";
        Ok(Self { host, port, url, was_sent_over_tls: was_private, ..self.clone() })
    }

    /// Turns the request into a GET without a body.
    pub(super) fn into_get(mut self) -> Self {
        self.method = Method::GET;
        self.body = Bytes::new();
        for name in BODY_HEADERS {
            self.own_headers.remove(name);
        }
        self
    }

    pub(super) fn is_https(&self) -> bool {
        self.url.scheme() == "https"
    }

    pub(super) fn is_head(&self) -> bool {
        self.method == Method::HEAD
    }

    /// Returns true if it would send the customer's body to another host, or in plain text after it was sent
    /// over TLS.
    pub(super) fn exposes_body(&self) -> bool {
        !self.body.is_empty() && !self.is_trusted()
    }

    /// Returns true if the customer's secrets may be sent.
    fn is_trusted(&self) -> bool {
        self.host == self.customer_host && (self.is_https() || !self.was_sent_over_tls)
    }

    /// Returns the headers of this request: the agent's own, and those of the customer's that may be sent.
    fn sent_headers(&self) -> impl Iterator<Item = (&HeaderName, &HeaderValue)> {
        let is_trusted = self.is_trusted();
        let own = self
            .own_headers
            .iter()
            .filter(move |(name, _)| is_trusted || NON_SECRET.contains(name) || name.as_str().starts_with("accept-"));
        own.chain(&self.shared_headers)
    }

    /// Combines the customer's cookies with those of the check's responses, which take precedence.
    fn cookie(&self) -> Option<HeaderValue> {
        let set = self.cookies.sent_to(&self.url);
        if set.is_empty() {
            return None;
        }
        let own = self.sent_headers().filter(|(name, _)| **name == header::COOKIE);
        let own = own.flat_map(|(_, value)| value.as_bytes().split(|byte| *byte == b';'));
        let own = own.map(<[u8]>::trim_ascii).filter(|pair| {
            let name = pair.split(|byte| *byte == b'=').next().unwrap_or_default().trim_ascii();
            !pair.is_empty() && set.iter().all(|(set, _)| set.as_bytes() != name)
        });
        let from_answers = set.iter().map(|(name, value)| format!("{name}={value}").into_bytes());
        let pairs: Vec<Vec<u8>> = own.map(<[u8]>::to_vec).chain(from_answers).collect();
        let mut value = HeaderValue::from_bytes(&pairs.join(b"; ".as_slice())).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    /// Returns the request line's target and all headers except those of the connection.
    fn fields(&self) -> Result<(String, HeaderMap, HeaderValue), WireFailure> {
        let path = match self.url.query() {
            Some(query) => format!("{}?{query}", self.url.path()),
            None => self.url.path().to_owned(),
        };
        let authority = match &self.own_host {
            Some(host) if self.host == self.customer_host => host.clone(),
            Some(_) | None => HeaderValue::from_str(&authority(&self.url)).map_err(|_| unusable_url())?,
        };
        let mut headers = HeaderMap::new();
        for (name, value) in self.sent_headers() {
            headers.append(name, value.clone());
        }
        if let Some(cookie) = self.cookie() {
            headers.insert(header::COOKIE, cookie);
        }
        for (name, value) in [
            (header::USER_AGENT, USER_AGENT),
            (header::ACCEPT, HeaderValue::from_static("*/*")),
            (header::ACCEPT_ENCODING, HeaderValue::from_static("identity")),
        ] {
            headers.entry(name).or_insert(value);
        }
        Ok((path, headers, authority))
    }

    /// Returns the request for hyper over HTTP/2.
    ///
    /// # Errors
    /// [`WireFailure::BadTarget`] for a URL that does not fit into a request.
    pub(super) fn request(&self) -> Result<Request<Full<Bytes>>, WireFailure> {
        let (path, headers, authority) = self.fields()?;
        let mut request = Request::new(Full::new(self.body.clone()));
        *request.method_mut() = self.method.clone();
        *request.headers_mut() = headers;
        *request.uri_mut() = Uri::builder()
            .scheme(self.url.scheme())
            .authority(authority.as_bytes())
            .path_and_query(path)
            .build()
            .map_err(|_| unusable_url())?;
        Ok(request)
    }

    /// Returns the request over HTTP/1.1 (RFC 9112, sections 2 and 3): request line, header lines and body.
    ///
    /// # Errors
    /// As [`RequestPlan::request`].
    pub(super) fn request_bytes(&self) -> Result<Vec<u8>, WireFailure> {
        let (path, headers, authority) = self.fields()?;
        let mut bytes = Vec::with_capacity(256 + self.body.len());
        for part in [self.method.as_str(), " ", &path, " HTTP/1.1\r\n"] {
            bytes.extend_from_slice(part.as_bytes());
        }
        // Methods with body semantics send a zero length explicitly, since some servers answer 411 otherwise
        // (RFC 9110, section 8.6).
        let says_length = matches!(self.method, Method::POST | Method::PUT | Method::PATCH);
        let length = (says_length || !self.body.is_empty()).then(|| HeaderValue::from(self.body.len()));
        let length = length.iter().map(|length| (&header::CONTENT_LENGTH, length));
        for (name, value) in [(&header::HOST, &authority)].into_iter().chain(&headers).chain(length) {
            for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
                bytes.extend_from_slice(part);
            }
        }
        bytes.extend_from_slice(b"\r\n");
        bytes.extend_from_slice(&self.body);
        Ok(bytes)
    }
}

fn unusable_url() -> WireFailure {
    bad_target("the URL can't be used in a request")
}

fn target_of(url: &Url) -> Result<(Host, u16), WireFailure> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err(bad_target("the URL's scheme must be http or https"));
    }
    let host = url.host().ok_or_else(|| bad_target("the URL has no host"))?;
    let host = Host::from_url(&host).map_err(|error| bad_target(error.to_string()))?;
    match url.port_or_known_default() {
        Some(port) if port > 0 => Ok((host, port)),
        Some(_) | None => Err(bad_target("the port must be 1 to 65535")),
    }
}

/// Returns the host and, if it is not the scheme's default, the port.
fn authority(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

/// Removes `user:password@` from a URL and returns it as Basic credentials (RFC 7617).
fn take_user_info(url: &mut Url) -> Result<Option<HeaderValue>, WireFailure> {
    if url.username().is_empty() && url.password().is_none() {
        return Ok(None);
    }
    let mut plain: Vec<u8> = percent_decode_str(url.username()).collect();
    plain.push(b':');
    plain.extend(percent_decode_str(url.password().unwrap_or_default()));
    let unfit = || bad_target("the URL's user info can't be used");
    let mut value = HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(plain))).map_err(|_| unfit())?;
    value.set_sensitive(true);
    url.set_username("").map_err(|()| unfit())?;
    url.set_password(None).map_err(|()| unfit())?;
    Ok(Some(value))
}

fn own_headers(check: &WireHttpCheck) -> Result<(HeaderMap, Option<HeaderValue>), WireFailure> {
    let mut headers = HeaderMap::new();
    let mut host = None;
    for own in &check.headers {
        let name = HeaderName::from_bytes(own.name.as_bytes())
            .map_err(|_| bad_target("a header's name must be letters, digits and hyphens"))?;
        let mut value = HeaderValue::from_bytes(own.value.reveal().as_bytes())
            .map_err(|_| bad_target(format!("the header {name} must not contain control characters")))?;
        value.set_sensitive(true);
        if name == header::HOST {
            if host.replace(value).is_some() {
                return Err(bad_target("the header host must be set only once"));
            }
        } else if RESERVED.contains(&name.as_str()) || name.as_str().starts_with("proxy-") {
            return Err(bad_target(format!("the header {name} can't be set")));
        } else {
            headers.append(name, value);
        }
    }
    Ok((headers, host))
}

fn method(method: CheckMethod) -> Method {
    match method {
        CheckMethod::Get => Method::GET,
        CheckMethod::Head => Method::HEAD,
        CheckMethod::Post => Method::POST,
        CheckMethod::Put => Method::PUT,
        CheckMethod::Patch => Method::PATCH,
        CheckMethod::Delete => Method::DELETE,
    }
}

fn takes_body(method: &Method) -> bool {
    matches!(*method, Method::POST | Method::PUT | Method::PATCH | Method::DELETE)
}

#[cfg(test)]
mod tests;
