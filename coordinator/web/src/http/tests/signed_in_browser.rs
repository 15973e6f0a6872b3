//! A browser that is signed in to the dashboard, for tests: it opens screens and sends forms.

use futures_util::StreamExt;
use parallax_core::account::Account;
use parallax_core::role::Role;
use parallax_service::people::NewSession;
use url::form_urlencoded;

use super::{TestClient, TestResponse};

/// A browser that is signed in to the dashboard.
#[derive(Debug, Clone)]
pub(in crate::http) struct SignedInBrowser {
    pub(in crate::http) cookie: String,
    pub(in crate::http) form_token: String,
}

impl SignedInBrowser {
    pub(in crate::http) fn of(client: &TestClient, session: &NewSession) -> Self {
        let form_token = client.world.service.people.form_token(session.session.id);
        Self { cookie: format!("__Host-plx={}", session.token.reveal()), form_token }
    }

    /// Body of a form with these fields and the session's token.
    fn form(&self, fields: &[(&str, &str)]) -> String {
        form_urlencoded::Serializer::new(String::new())
            .append_pair("form_token", &self.form_token)
            .extend_pairs(fields)
            .finish()
    }
}

/// Headers of a form that a browser sends from the dashboard's own page.
const FORM_HEADERS: [(&str, &str); 2] =
    [("content-type", "application/x-www-form-urlencoded"), ("sec-fetch-site", "same-origin")];

/// Returns the address to which a reply redirects; empty if it doesn't.
pub(in crate::http) fn location(response: &TestResponse) -> &str {
    response.headers.get("location").map_or("", |value| value.to_str().unwrap())
}

/// Returns the first text between two marks.
pub(in crate::http) fn between<'a>(text: &'a str, before: &str, after: &str) -> &'a str {
    let rest = text.split_once(before).and_then(|(_, rest)| rest.split_once(after));
    rest.unwrap_or_else(|| panic!("no {before:?} with {after:?} after it: {text}")).0
}

/// Returns the value of a hidden field of a screen's form.
pub(in crate::http) fn hidden(screen: &TestResponse, name: &str) -> String {
    between(&screen.text, &format!("name=\"{name}\" value=\""), "\"").to_owned()
}

impl TestClient {
    /// Returns the address of a screen of the shop's page.
    pub(in crate::http) fn screen(&self, rest: &str) -> String {
        format!("/app/pages/{}{rest}", self.world.shop.id)
    }

    /// Signs in a new member of the owner's account with that role.
    pub(in crate::http) async fn sign_in(&self, role: Role) -> SignedInBrowser {
        SignedInBrowser::of(self, &self.world.signed_in(role).await)
    }

    /// The account that owns nothing of the owner's.
    pub(in crate::http) async fn stranger_account(&self) -> Account {
        let accounts = self.world.service.accounts.list().await.unwrap();
        accounts.into_iter().find(|account| account.id == self.world.foreign.account).unwrap()
    }

    /// Opens a screen of the dashboard.
    pub(in crate::http) async fn open(&self, browser: &SignedInBrowser, path: &str) -> TestResponse {
        self.send("GET", path, &[("cookie", &browser.cookie)], "").await
    }

    /// Sends a form of the dashboard, with its token.
    pub(in crate::http) async fn submit(
        &self,
        browser: &SignedInBrowser,
        path: &str,
        fields: &[(&str, &str)],
    ) -> TestResponse {
        self.send_form(path, &[("cookie", &browser.cookie)], &browser.form(fields)).await
    }

    /// Sends the form of a check, for an answer in fragments: returns them once all have arrived.
    pub(in crate::http) async fn fragments(
        &self,
        browser: &SignedInBrowser,
        path: &str,
        fields: &[(&str, &str)],
    ) -> Vec<String> {
        let headers = [&[("cookie", browser.cookie.as_str())][..], &FORM_HEADERS].concat();
        let reply = self.reply("POST", &format!("{path}?fragments=1"), &headers, browser.form(fields).into()).await;
        let chunks: Vec<_> = reply.into_stream().unwrap().map(|chunk| chunk.unwrap()).collect().await;
        let text = String::from_utf8(chunks.concat()).unwrap();
        text.split_terminator('\u{1e}').map(str::to_owned).collect()
    }

    /// Sends a form as a browser does from the dashboard's own page.
    pub(in crate::http) async fn send_form(
        &self,
        path: &str,
        headers: &[(&'static str, &str)],
        form: &str,
    ) -> TestResponse {
        self.send("POST", path, &[headers, &FORM_HEADERS].concat(), form).await
    }
}
