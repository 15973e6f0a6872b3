//! A browser without a screen that is signed in to the dashboard: it opens screens and sends forms.

use std::path::PathBuf;
use std::time::Duration;

use parallax_core::id::{AccountId, PersonId};
use parallax_core::person::{AccountMember, Person};
use parallax_core::role::Role;
use parallax_store::disk::DiskOptions;
use parallax_store::{Batch, Store};
use reqwest::header::{CONTENT_TYPE, COOKIE, HeaderMap, HeaderName, LOCATION, SET_COOKIE};
use reqwest::redirect::Policy;

use crate::api_client::http_client_builder;
use crate::installation::CoordinatorProcess;

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

    /// Uses a set-up link of the only account, by which it gets an owner; returns the account and the owner's browser.
    ///
    /// # Panics
    /// If there is no such account, or it refuses.
    pub async fn set_up(coordinator: &CoordinatorProcess, email: &str, password: &str) -> (AccountId, Self) {
        let link = coordinator.run_command(&["account", "link"]).unwrap_or_else(|fault| panic!("{fault}"));
        let base = coordinator.ready.base_url.trim_end_matches('/');
        let path = link["setUpUrl"].as_str().and_then(|url| url.strip_prefix(base)).expect("a link");
        let fields = [("email", email), ("name", "Olga"), ("password", password)];
        let owner = Self::new(base).sign_in(path, &fields).await.expect("it is up");
        (link["account"].as_str().and_then(|id| id.parse().ok()).expect("an id"), owner)
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

/// Adds a member with a name and the owner's password to an account, as an invitation would. No coordinator may be running on
/// the data.
///
/// # Panics
/// If the store can't be written, or there is no such owner.
pub async fn add_member(data: PathBuf, account: AccountId, owner: &str, (email, name, role): (&str, &str, Role)) {
    let folder = data.join("store");
    let open = move || Store::on_disk(&folder, DiskOptions::default());
    let store = tokio::task::spawn_blocking(open).await.expect("no panic").expect("the store opens");
    let owner = store.reader().person_by_email(owner).expect("a read").expect("the owner is stored").value;
    let joined_at = owner.created_at;
    let mut random = [7; 10];
    random.iter_mut().zip(email.bytes()).for_each(|(byte, from)| *byte = from);
    let member = Person {
        id: PersonId::new(joined_at, random),
        email: email.to_owned(),
        name: Some(name.to_owned()),
        is_operator: false,
        ..owner
    };
    let mut batch = Batch::new();
    batch.write(AccountMember::new((account, member.id), role, joined_at)).write(member);
    store.commit(batch).await.expect("a commit");
    store.close().await;
}
