//! The API as one key sees it, with checks on the answers.

use std::time::Duration;

use reqwest::Method;
use reqwest::redirect::Policy;
use serde_json::Value;

/// Longest wait for an answer.
const LIMIT: Duration = Duration::from_secs(30);

/// Speaks to one coordinator, with one key or none.
#[derive(Debug, Clone)]
pub struct Client {
    http: reqwest::Client,
    base: String,
    key: Option<String>,
}

/// A client of HTTP that waits so long for an answer. What is under test speaks plain HTTP on loopback: no authority is
/// trusted, and no proxy is asked.
pub fn plain(limit: Duration) -> reqwest::ClientBuilder {
    crate::use_ring();
    let tls = rustls::ClientConfig::builder()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    reqwest::Client::builder().tls_backend_preconfigured(tls).no_proxy().timeout(limit)
}

impl Client {
    /// A client of the service at `base` (`http://host:port`).
    pub fn new(base: &str, key: Option<&str>) -> Self {
        Self::patient(base, key, LIMIT)
    }

    /// As [`Client::new`], and waits so long for an answer.
    pub fn patient(base: &str, key: Option<&str>, limit: Duration) -> Self {
        let http = plain(limit).redirect(Policy::none()).build().expect("client can be built");
        Self { http, base: base.trim_end_matches('/').to_owned(), key: key.map(str::to_owned) }
    }

    /// The same service with another key, or with none.
    pub fn with_key(&self, key: Option<&str>) -> Self {
        Self { key: key.map(str::to_owned), ..self.clone() }
    }

    /// GET of a path below `/api/v1`.
    pub async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, &format!("/api/v1{path}"), None).await
    }

    /// POST of a JSON body to a path below `/api/v1`.
    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.send(Method::POST, &format!("/api/v1{path}"), Some(body.to_string())).await
    }

    /// PATCH of a path below `/api/v1`.
    pub async fn patch(&self, path: &str, body: &Value) -> Answer {
        self.send(Method::PATCH, &format!("/api/v1{path}"), Some(body.to_string())).await
    }

    /// DELETE of a path below `/api/v1`.
    pub async fn delete(&self, path: &str) -> Answer {
        self.send(Method::DELETE, &format!("/api/v1{path}"), None).await
    }

    /// Any method on any path of the service, with a body sent as JSON just as it is given.
    pub async fn send(&self, method: Method, path: &str, body: Option<String>) -> Answer {
        let what = format!("{method} {path}");
        self.try_send(method, path, body).await.unwrap_or_else(|error| panic!("{what}: {error:?}"))
    }

    /// As [`Client::send`]; an error where the service went away before it answered.
    ///
    /// # Errors
    /// What the connection ended with.
    pub async fn try_send(
        &self,
        method: Method,
        path: &str,
        body: Option<String>,
    ) -> Result<Answer, reqwest::Error> {
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
            .map(|(name, value)| {
                (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
            })
            .collect();
        let text = answer.text().await?;
        Ok(Answer { what, status, headers, text })
    }

    /// As [`Client::send`] below `/api/v1`; none where the service went away before it answered.
    pub async fn attempt(&self, method: Method, path: &str, body: Option<&Value>) -> Option<Answer> {
        let path = format!("/api/v1{path}");
        self.try_send(method, &path, body.map(Value::to_string)).await.ok()
    }

    /// Creates a monitor on a page and gives it as answered.
    pub async fn create_monitor(&self, page: &str, body: &Value) -> Value {
        self.post(&format!("/pages/{page}/monitors"), body).await.is(201)["monitor"].take()
    }

    /// One monitor as it is now.
    pub async fn monitor(&self, page: &str, monitor: &Value) -> Value {
        let id = monitor["id"].as_str().expect("a monitor has an id");
        self.get(&format!("/pages/{page}/monitors/{id}")).await.is(200)["monitor"].take()
    }

    /// The monitors of a page, in its order.
    pub async fn monitors(&self, page: &str) -> Vec<Value> {
        let mut answer = self.get(&format!("/pages/{page}/monitors")).await.is(200);
        serde_json::from_value(answer["monitors"].take()).expect("monitors are a list")
    }
}

/// What came back.
#[derive(Debug)]
pub struct Answer {
    what: String,
    /// HTTP status.
    pub status: u16,
    headers: Vec<(String, String)>,
    /// The body as text.
    pub text: String,
}

impl Answer {
    /// The body, when the status is `expected`; null where there is none.
    pub fn is(self, expected: u16) -> Value {
        assert_eq!(self.status, expected, "{}: {}", self.what, self.text);
        if self.text.is_empty() { Value::Null } else { self.json() }
    }

    /// The message, when this is the error `code` with the status `expected`, in the contract's shape.
    pub fn refused(self, expected: u16, code: &str) -> String {
        let what = self.what.clone();
        let body = self.is(expected);
        assert_eq!(body["error"]["code"], code, "{what}: {body}");
        let message = body["error"]["message"].as_str().unwrap_or_default().to_owned();
        assert!(!message.is_empty(), "{what}: an error has words: {body}");
        message
    }

    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text)
            .unwrap_or_else(|error| panic!("{}: {}: no JSON: {error}: {}", self.what, self.status, self.text))
    }

    /// A header, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}
