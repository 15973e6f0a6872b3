//! A browser without a screen that is signed in to the dashboard: it opens screens and sends forms.

use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, COOKIE, HeaderMap, HeaderName, LOCATION, SET_COOKIE};
use reqwest::redirect::Policy;

use crate::api_client::http_client_builder;

/// Longest answer to a form that hashes a password.
const LIMIT: Duration = Duration::from_secs(30);

/// A browser with the cookies of one session.
#[derive(Debug, Clone)]
pub struct DashboardBrowser {
    http: reqwest::Client,
    base: String,
    cookie: String,
    form_token: String,
}

/// An answer of the dashboard.
#[derive(Debug, Clone)]
pub struct DashboardAnswer {
    /// HTTP status.
    pub status: u16,
    /// Address of a redirect; empty if it is none.
    pub location: String,
    /// The body.
    pub text: String,
    cookie: String,
}

impl DashboardBrowser {
    /// Returns a browser that is not signed in, for the coordinator at `base` (`http://host:port`).
    pub fn new(base: &str) -> Self {
        let http = http_client_builder(LIMIT).redirect(Policy::none()).build().expect("client can be built");
        let base = base.trim_end_matches('/').to_owned();
        Self { http, base, cookie: String::new(), form_token: String::new() }
    }

    /// Sends a form that signs in, such as `/sign-in` or a set-up link's path; none if the service is down.
    ///
    /// # Panics
    /// If it is not signed in.
    pub async fn sign_in(&self, path: &str, fields: &[(&str, &str)]) -> Option<Self> {
        let answer = self.submit(path, fields).await?;
        assert_eq!(answer.status, 303, "{path}: {}", answer.text);
        assert!(!answer.cookie.is_empty(), "{path}");
        Some(Self { cookie: answer.cookie, ..self.clone() })
    }

    /// The session's cookies, as a request sends them.
    pub fn cookie(&self) -> &str {
        &self.cookie
    }

    /// Opens a screen, and keeps the token of its forms; none if the service is down.
    pub async fn open(&mut self, path: &str) -> Option<DashboardAnswer> {
        let answer = self.read(self.http.get(format!("{}{path}", self.base))).await?;
        if let Some((_, rest)) = answer.text.split_once("name=\"form_token\" value=\"") {
            self.form_token = rest.split('"').next().unwrap_or_default().to_owned();
        }
        Some(answer)
    }

    /// Sends a form with the token of the screen that was opened last; none if the service is down.
    pub async fn submit(&self, path: &str, fields: &[(&str, &str)]) -> Option<DashboardAnswer> {
        let form = self.form(fields);
        let request = self.http.post(format!("{}{path}", self.base)).body(form);
        let request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        self.read(request.header(HeaderName::from_static("sec-fetch-site"), "same-origin")).await
    }

    fn form(&self, fields: &[(&str, &str)]) -> String {
        let mut form = url::form_urlencoded::Serializer::new(String::new());
        form.extend_pairs(fields).append_pair("form_token", &self.form_token).finish()
    }

    async fn read(&self, request: reqwest::RequestBuilder) -> Option<DashboardAnswer> {
        let response = request.header(COOKIE, &self.cookie).send().await.ok()?;
        let text = |headers: &HeaderMap, name: HeaderName| {
            headers.get(name).and_then(|it| it.to_str().ok()).unwrap_or_default().to_owned()
        };
        let set = response.headers().get_all(SET_COOKIE).iter().filter_map(|it| it.to_str().ok());
        let cookie = set.filter_map(|it| it.split(';').next()).collect::<Vec<_>>().join("; ");
        let (status, location) = (response.status().as_u16(), text(response.headers(), LOCATION));
        Some(DashboardAnswer { status, location, cookie, text: response.text().await.ok()? })
    }
}
