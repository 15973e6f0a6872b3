//! A browser that is signed in to the dashboard, for tests: it opens screens and sends forms.

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
}

impl TestClient {
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
        let form = form_urlencoded::Serializer::new(String::new())
            .append_pair("form_token", &browser.form_token)
            .extend_pairs(fields)
            .finish();
        self.send_form(path, &[("cookie", &browser.cookie)], &form).await
    }

    /// Sends a form as a browser does from the dashboard's own page.
    pub(in crate::http) async fn send_form(
        &self,
        path: &str,
        headers: &[(&'static str, &str)],
        form: &str,
    ) -> TestResponse {
        let own = [("content-type", "application/x-www-form-urlencoded"), ("sec-fetch-site", "same-origin")];
        self.send("POST", path, &[headers, &own].concat(), form).await
    }
}
