//! Pages of people who are not signed in: sign-in, set-up of an account, confirmation of the password, and messages.

use parallax_template::template_file;

use super::render;
use crate::views::assets;

/// Form to sign in.
#[template_file("dashboard/sign_in.html")]
#[derive(Debug, Clone)]
pub(crate) struct SignInForm {
    /// Path to go to afterwards.
    pub next: String,
    /// Email address that was entered.
    pub email: String,
    /// Reason why the last try failed.
    pub fault: Option<String>,
    /// True where nothing encrypts the connection.
    pub is_plain_http: bool,
}

/// Form by which an account gets its owner.
#[template_file("dashboard/set_up.html")]
#[derive(Debug, Clone)]
pub(crate) struct SetUpForm {
    /// Token of the link.
    pub token: String,
    /// Email address of the account, or the one that was entered.
    pub email: String,
    /// True if the account has an email address; otherwise its owner enters one.
    pub has_email: bool,
    /// Fault of the email address; empty if there is none.
    pub email_fault: String,
    /// Name that was entered.
    pub name: String,
    /// Fault of the name; empty if there is none.
    pub name_fault: String,
    /// Fault of the password; empty if there is none.
    pub password_fault: String,
    /// True where nothing encrypts the connection.
    pub is_plain_http: bool,
}

/// Button of a valid sign-in link.
#[template_file("dashboard/link_button.html")]
#[derive(Debug, Clone)]
pub(crate) struct LinkButton {
    /// Token of the link.
    pub token: String,
}

/// Form by which a signed-in person confirms their password.
#[template_file("dashboard/confirm.html")]
#[derive(Debug, Clone)]
pub(crate) struct ConfirmForm {
    /// Path to go to afterwards.
    pub next: String,
    /// Email address of the person, for the browser's password manager.
    pub email: String,
    /// False if the person signs in by mailed link alone.
    pub has_password: bool,
    /// Token of the session's forms.
    pub form_token: String,
    /// Fault of the password; empty if there is none.
    pub fault: String,
}

/// A page with one message.
#[template_file("dashboard/message.html")]
#[derive(Debug, Clone)]
pub(crate) struct MessagePage {
    title: &'static str,
    text: String,
    /// Path and text.
    link: Option<(String, &'static str)>,
}

impl MessagePage {
    /// A page without a link.
    pub(crate) const fn new(title: &'static str, text: String) -> Self {
        Self { title, text, link: None }
    }

    /// Adds a link.
    pub(crate) fn with_link(self, path: &str, text: &'static str) -> Self {
        Self { link: Some((path.to_owned(), text)), ..self }
    }
}

macro_rules! html {
    ($($page:ty)*) => {$(
        impl $page {
            /// Renders the page as HTML.
            pub(crate) fn html(&self) -> String {
                // Rendering to memory does not fail.
                render(self).unwrap_or_default()
            }
        }
    )*};
}

html! { SignInForm SetUpForm LinkButton ConfirmForm MessagePage }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_from_outside_is_escaped() {
        let evil = "\"><script>alert(1)</script>".to_owned();
        let sign_in =
            SignInForm { next: evil.clone(), email: evil.clone(), fault: Some(evil.clone()), is_plain_http: true };
        let set_up = SetUpForm {
            token: evil.clone(),
            email: evil.clone(),
            has_email: false,
            email_fault: evil.clone(),
            name: evil.clone(),
            name_fault: evil.clone(),
            password_fault: evil.clone(),
            is_plain_http: false,
        };
        let confirm = ConfirmForm {
            next: evil.clone(),
            email: evil.clone(),
            has_password: true,
            form_token: evil.clone(),
            fault: evil.clone(),
        };
        for page in [
            sign_in.html(),
            set_up.html(),
            confirm.html(),
            LinkButton { token: evil.clone() }.html(),
            MessagePage::new("Title", evil.clone()).with_link(&evil, "Link").html(),
        ] {
            assert!(page.contains("alert(1)") && !page.contains("<script>"), "{page}");
            assert!(!page.contains("style=") && page.contains("</html>"), "{page}");
        }
    }
}
