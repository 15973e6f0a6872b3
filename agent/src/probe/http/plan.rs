//! One request to make: where to, how, and with which headers.

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, Version, header};
use http_body_util::Full;
use parallax_dial::Host;
use parallax_protocol::{
    check::{HttpCheck, Method as CheckMethod},
    result::Failure,
};
use percent_encoding::percent_decode_str;
use url::Url;

use crate::probe::facts::bad_target;

/// What we call ourselves unless the check says otherwise.
const USER_AGENT: HeaderValue =
    HeaderValue::from_static(concat!("Parallax/", env!("CARGO_PKG_VERSION"), " (uptime check)"));

/// Headers that belong to the connection or are made from the request (RFC 9110, section 7.6.1) and so can't be set;
/// all of `proxy-` are among them.
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

/// A request before it is sent.
#[derive(Clone)]
pub(super) struct Plan {
    /// Without user info and fragment.
    pub(super) url: Url,
    pub(super) host: Host,
    pub(super) port: u16,
    pub(super) method: Method,
    /// The customer's headers, their credentials among them; they go to one origin only.
    pub(super) own_headers: HeaderMap,
    /// What `Host` says, where the customer overrides it.
    pub(super) own_host: Option<HeaderValue>,
    pub(super) body: Bytes,
}

impl Plan {
    /// The request a check asks for.
    ///
    /// # Errors
    /// [`Failure::BadTarget`] naming the rule that the URL or a header breaks.
    pub(super) fn first(check: &HttpCheck) -> Result<Self, Failure> {
        let mut url = Url::parse(&check.url).map_err(|_| bad_target("the URL can't be read"))?;
        let (host, port) = place(&url)?;
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
        Ok(Self { url, host, port, method, own_headers, own_host, body })
    }

    /// The same request to another address. Where that is another origin, nothing of the customer's goes along
    /// but the body.
    ///
    /// # Errors
    /// [`Failure::BadTarget`] as for [`Plan::first`].
    pub(super) fn moved_to(&self, mut url: Url) -> Result<Self, Failure> {
        let (host, port) = place(&url)?;
        // Credentials come from the customer, never from an answer.
        take_user_info(&mut url)?;
        url.set_fragment(None);
        let mut plan = Self { host, port, url, ..self.clone() };
        if plan.url.origin() != self.url.origin() {
            plan.own_headers.clear();
            plan.own_host = None;
        }
        Ok(plan)
    }

    /// Turns it into a GET without a body.
    pub(super) fn into_get(mut self) -> Self {
        self.method = Method::GET;
        self.body = Bytes::new();
        for name in [
            header::CONTENT_TYPE,
            header::CONTENT_ENCODING,
            header::CONTENT_LANGUAGE,
            header::CONTENT_LOCATION,
        ] {
            self.own_headers.remove(name);
        }
        self
    }

    pub(super) fn is_https(&self) -> bool {
        self.url.scheme() == "https"
    }

    /// The request as hyper sends it in `version`.
    ///
    /// # Errors
    /// [`Failure::BadTarget`] for a URL that no request line can hold.
    pub(super) fn request(&self, version: Version) -> Result<Request<Full<Bytes>>, Failure> {
        let unfit = || bad_target("the URL can't be put into a request");
        let path = match self.url.query() {
            Some(query) => format!("{}?{query}", self.url.path()),
            None => self.url.path().to_owned(),
        };
        let authority = match &self.own_host {
            Some(host) => host.clone(),
            None => HeaderValue::from_str(&authority(&self.url)).map_err(|_| unfit())?,
        };
        let mut request = Request::new(Full::new(self.body.clone()));
        *request.method_mut() = self.method.clone();
        let headers = request.headers_mut();
        headers.insert(header::USER_AGENT, USER_AGENT);
        headers.insert(header::ACCEPT, HeaderValue::from_static("*/*"));
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        for name in self.own_headers.keys() {
            headers.remove(name);
        }
        for (name, value) in &self.own_headers {
            headers.append(name, value.clone());
        }
        *request.uri_mut() = if version == Version::HTTP_2 {
            Uri::builder()
                .scheme(self.url.scheme())
                .authority(authority.as_bytes())
                .path_and_query(path)
                .build()
                .map_err(|_| unfit())?
        } else {
            request.headers_mut().insert(header::HOST, authority);
            path.parse().map_err(|_| unfit())?
        };
        Ok(request)
    }
}

fn place(url: &Url) -> Result<(Host, u16), Failure> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err(bad_target("the URL's scheme is http or https"));
    }
    let host = url.host().ok_or_else(|| bad_target("the URL has no host"))?;
    let host = Host::from_url(&host).map_err(|error| bad_target(error.to_string()))?;
    match url.port_or_known_default() {
        Some(port) if port > 0 => Ok((host, port)),
        Some(_) | None => Err(bad_target("port is 1 to 65535")),
    }
}

/// Host and, where it is not the scheme's own, port.
fn authority(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

/// Takes `user:password@` out of a URL and makes it Basic credentials (RFC 7617).
fn take_user_info(url: &mut Url) -> Result<Option<HeaderValue>, Failure> {
    if url.username().is_empty() && url.password().is_none() {
        return Ok(None);
    }
    let mut plain: Vec<u8> = percent_decode_str(url.username()).collect();
    plain.push(b':');
    plain.extend(percent_decode_str(url.password().unwrap_or_default()));
    let unfit = || bad_target("the URL's user info can't be used");
    let mut value =
        HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(plain))).map_err(|_| unfit())?;
    value.set_sensitive(true);
    url.set_username("").map_err(|()| unfit())?;
    url.set_password(None).map_err(|()| unfit())?;
    Ok(Some(value))
}

fn own_headers(check: &HttpCheck) -> Result<(HeaderMap, Option<HeaderValue>), Failure> {
    let mut headers = HeaderMap::new();
    let mut host = None;
    for own in &check.headers {
        let name = HeaderName::from_bytes(own.name.as_bytes())
            .map_err(|_| bad_target("a header's name is letters, digits and hyphens"))?;
        let mut value = HeaderValue::from_bytes(own.value.reveal().as_bytes())
            .map_err(|_| bad_target(format!("the header {name} has a control character")))?;
        value.set_sensitive(true);
        if name == header::HOST {
            if host.replace(value).is_some() {
                return Err(bad_target("the header host is set twice"));
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
