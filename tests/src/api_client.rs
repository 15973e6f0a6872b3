//! API client for one key, with assertions on responses.

use std::time::Duration;

use reqwest::Method;
use reqwest::redirect::Policy;
use serde_json::Value;

/// Default response timeout.
const LIMIT: Duration = Duration::from_secs(30);

/// A client of one coordinator, with one key or none.
#[derive(Debug, Clone)]
pub struct ApiClient {
    http: reqwest::Client,
    base: String,
    key: Option<String>,
}

/// Returns a builder for HTTP clients with a response timeout. The service under test uses plain HTTP on loopback, so
/// no root certificates are trusted and no proxy is used.
pub fn http_client_builder(limit: Duration) -> reqwest::ClientBuilder {
    crate::use_ring();
    let tls =
        rustls::ClientConfig::builder().with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth();
    reqwest::Client::builder().tls_backend_preconfigured(tls).no_proxy().timeout(limit)
}

impl ApiClient {
    /// Returns a client of the service at `base` (`http://host:port`).
    pub fn new(base: &str, key: Option<&str>) -> Self {
        Self::with_timeout(base, key, LIMIT)
    }

    /// As [`ApiClient::new`], with a response timeout.
    pub fn with_timeout(base: &str, key: Option<&str>, limit: Duration) -> Self {
        let http = http_client_builder(limit).redirect(Policy::none()).build().expect("client can be built");
        Self { http, base: base.trim_end_matches('/').to_owned(), key: key.map(str::to_owned) }
    }

    /// Returns a client of the same service with another key, or with none.
    pub fn with_key(&self, key: Option<&str>) -> Self {
        Self { key: key.map(str::to_owned), ..self.clone() }
    }

    /// Sends GET for a path below `/api/v1`.
    pub async fn get(&self, path: &str) -> ApiResponse {
        self.send(Method::GET, &format!("/api/v1{path}"), None).await
    }

    /// Sends POST with a JSON body to a path below `/api/v1`.
    pub async fn post(&self, path: &str, body: &Value) -> ApiResponse {
        self.send(Method::POST, &format!("/api/v1{path}"), Some(body.to_string())).await
    }

    /// Sends PATCH with a JSON body to a path below `/api/v1`.
    pub async fn patch(&self, path: &str, body: &Value) -> ApiResponse {
        self.send(Method::PATCH, &format!("/api/v1{path}"), Some(body.to_string())).await
    }

    /// Sends DELETE for a path below `/api/v1`.
    pub async fn delete(&self, path: &str) -> ApiResponse {
        self.send(Method::DELETE, &format!("/api/v1{path}"), None).await
    }

    /// Sends any method to any path of the service. The body is sent unchanged, as JSON.
    pub async fn send(&self, method: Method, path: &str, body: Option<String>) -> ApiResponse {
        let what = format!("{method} {path}");
        self.try_send(method, path, body).await.unwrap_or_else(|error| panic!("{what}: {error:?}"))
    }

    /// As [`ApiClient::send`], but returns connection errors.
    ///
    /// # Errors
    ///
    /// The connection ended before the response was complete.
    pub async fn try_send(
        &self,
        method: Method,
        path: &str,
        body: Option<String>,
    ) -> Result<ApiResponse, reqwest::Error> {
        let what = format!("{method} {path}");
        let mut request = self.http.request(method, format!("{}{path}", self.base));
        if let Some(key) = &self.key {
            request = request.bearer_auth(key);
        }
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body);
        }
        let answer = request.send().await?;
        let status = answer.status().as_u16();
        let headers = answer
            .headers()
            .iter()
            .map(|(name, value)| (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
            .collect();
        let text = answer.text().await?;
        Ok(ApiResponse { what, status, headers, text })
    }

    /// As [`ApiClient::send`] below `/api/v1`; `None` if the connection ended before the response.
    pub async fn try_request(&self, method: Method, path: &str, body: Option<&Value>) -> Option<ApiResponse> {
        let path = format!("/api/v1{path}");
        self.try_send(method, &path, body.map(Value::to_string)).await.ok()
    }

    /// Creates a monitor on a page and returns it.
    pub async fn create_monitor(&self, page: &str, body: &Value) -> Value {
        self.post(&format!("/pages/{page}/monitors"), body).await.expect_status(201)["monitor"].take()
    }

    /// Returns the current state of a monitor.
    pub async fn monitor(&self, page: &str, monitor: &Value) -> Value {
        let id = monitor["id"].as_str().expect("a monitor has an id");
        self.get(&format!("/pages/{page}/monitors/{id}")).await.expect_status(200)["monitor"].take()
    }

    /// Returns the monitors of a page, in page order.
    pub async fn monitors(&self, page: &str) -> Vec<Value> {
        let mut answer = self.get(&format!("/pages/{page}/monitors")).await.expect_status(200);
        serde_json::from_value(answer["monitors"].take()).expect("monitors are a list")
    }
}

/// An HTTP response.
#[derive(Debug)]
pub struct ApiResponse {
    what: String,
    /// HTTP status.
    pub status: u16,
    headers: Vec<(String, String)>,
    /// The body as text.
    pub text: String,
}

impl ApiResponse {
    /// Asserts the status and returns the body; null if it is empty.
    pub fn expect_status(self, expected: u16) -> Value {
        assert_eq!(self.status, expected, "{}: {}", self.what, self.text);
        if self.text.is_empty() { Value::Null } else { self.json() }
    }

    /// Asserts an error response with the status `expected` and the code `code`, in the documented shape, and returns
    /// its message.
    pub fn expect_error(self, expected: u16, code: &str) -> String {
        let what = self.what.clone();
        let body = self.expect_status(expected);
        assert_eq!(body["error"]["code"], code, "{what}: {body}");
        let message = body["error"]["message"].as_str().unwrap_or_default().to_owned();
        assert!(!message.is_empty(), "{what}: an error has a message: {body}");
        message
    }

    /// Parses the body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text)
            .unwrap_or_else(|error| panic!("{}: {}: no JSON: {error}: {}", self.what, self.status, self.text))
    }

    /// Returns a header, by its lower-case name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}
