//! Request handling of one connection: checks the host, redirects to HTTPS, tries the cache, then calls the routes.

use std::convert::Infallible;
use std::sync::Arc;

use ::http::header::{ALLOW, HOST, HeaderName, STRICT_TRANSPORT_SECURITY};
use ::http::{HeaderValue, Method, Request, StatusCode, Version};
use hyper::body::Incoming;
use hyper::service::Service;

use super::client_ip::PeerAddress;
use super::https_redirect;
use super::idle_connections::ConnectionActivity;
use super::listener::ListenerMode;
use crate::http::HttpContext;
use crate::http::error::ApiError;
use crate::http::response::HttpResponse;

/// HSTS policy (RFC 6797): half a year. Subdomains are not included, and it is not longer, since a page's custom domain
/// may later move to a host without TLS.
pub(super) const HSTS: HeaderValue = HeaderValue::from_static("max-age=15552000");

/// Methods supported by the server: the response to `OPTIONS *` (RFC 9110, section 9.3.7).
const SERVER_METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS");

/// State of a connection to a client.
#[derive(Debug)]
pub(super) struct HttpConnection<S> {
    pub(super) service: S,
    pub(super) context: Arc<HttpContext>,
    pub(super) peer: PeerAddress,
    pub(super) activity: ConnectionActivity,
    pub(super) mode: ListenerMode,
}

impl<S> HttpConnection<S>
where
    S: Service<Request<Incoming>, Response = warp::reply::Response, Error = Infallible>,
{
    /// Handles a request.
    ///
    /// # Errors
    /// None.
    pub(super) async fn handle(&self, mut request: Request<Incoming>) -> Result<warp::reply::Response, Infallible> {
        let _request = self.activity.begin_request();
        request.extensions_mut().insert(self.peer);
        let mut response = match self.early_response(&mut request) {
            Some(reply) => {
                self.context.count_response(reply.status());
                reply.into_warp()
            }
            // Boxed, since hyper keeps the memory of a response future for the life of the connection, which may be
            // hours for an event stream.
            None => Box::pin(self.service.call(request)).await?,
        };
        if matches!(self.mode, ListenerMode::Tls(..)) {
            response.headers_mut().insert(STRICT_TRANSPORT_SECURITY, HSTS);
        }
        Ok(response)
    }

    /// Returns a response that does not need the routes, if there is one.
    fn early_response<B>(&self, request: &mut Request<B>) -> Option<HttpResponse> {
        if !has_valid_host(request) {
            return Some(ApiError::InvalidHost.into_response());
        }
        if request.method() == Method::OPTIONS && request.uri().path() == "*" {
            return Some(HttpResponse::empty(StatusCode::NO_CONTENT).with(ALLOW, SERVER_METHODS));
        }
        // Requests for a tunnel name only a host; warp panics without a path.
        if request.uri().path_and_query().is_none() {
            return Some(ApiError::NoRoute.into_response());
        }
        let challenge_or_redirect = match &self.mode {
            ListenerMode::PlainWithTls { challenges, redirect } => {
                https_redirect::plain_response(&self.context, challenges, *redirect, request)
                    .unwrap_or_else(|error| Some(error.into_response()))
            }
            ListenerMode::Plain | ListenerMode::Tls(..) => None,
        };
        challenge_or_redirect.or_else(|| self.context.response_index.respond(request))
    }
}

/// Returns true if a request names its host exactly once, which HTTP/1.1 requires (RFC 9112, section 3.2). HTTP/2 sends
/// `:authority` (RFC 9113, section 8.3.1), which is copied to the header; if both are sent, they must agree.
fn has_valid_host<B>(request: &mut Request<B>) -> bool {
    let host_count = request.headers().get_all(HOST).iter().count();
    let authority = request.uri().authority().map(|authority| authority.as_str().to_owned());
    match (host_count, authority) {
        (0, None) => request.version() < Version::HTTP_11,
        (0, Some(authority)) if request.version() == Version::HTTP_2 => {
            HeaderValue::try_from(authority).is_ok_and(|host| {
                request.headers_mut().insert(HOST, host);
                true
            })
        }
        (0, Some(_)) => request.version() < Version::HTTP_11,
        (1, None) => true,
        (1, Some(authority)) => header_text(request, &HOST).is_some_and(|host| host.eq_ignore_ascii_case(&authority)),
        _ => false,
    }
}

fn header_text<'a, B>(request: &'a Request<B>, name: &HeaderName) -> Option<&'a str> {
    request.headers().get(name)?.to_str().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_names_one_host() {
        let is_valid = |version, uri: &str, hosts: &[&str]| {
            let mut request = Request::builder().version(version).uri(uri);
            for host in hosts {
                request = request.header(HOST, *host);
            }
            let mut request = request.body(()).unwrap();
            has_valid_host(&mut request).then(|| header_text(&request, &HOST).unwrap_or_default().to_owned())
        };
        let [old, one, two] = [Version::HTTP_10, Version::HTTP_11, Version::HTTP_2];
        for (version, uri, hosts, expected) in [
            (old, "/", &[][..], Some("")),
            (one, "/", &[], None),
            (one, "/", &["a.example"], Some("a.example")),
            (one, "/", &["a.example", "a.example"], None),
            (one, "http://A.example/", &["a.example"], Some("a.example")),
            (one, "http://b.example/", &["a.example"], None),
            (one, "http://a.example/", &[], None),
            (two, "https://a.example/", &[], Some("a.example")),
            (two, "https://a.example/", &["a.example"], Some("a.example")),
            (two, "https://a.example/", &["b.example"], None),
            (two, "/", &[], None),
        ] {
            assert_eq!(is_valid(version, uri, hosts).as_deref(), expected, "{version:?} {uri} {hosts:?}");
        }
    }
}
