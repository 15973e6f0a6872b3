//! Pages of people who are not signed in: sign-in, set-up of an account, invitations, a new password, confirmation of
//! the password, and messages.

use parallax_core::role::Role;
use parallax_template::template_file;

use super::first_site::{FirstSiteFields, FirstSiteTest};
use super::{members, render};
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
    /// True if links can be mailed.
    pub sends_mail: bool,
    /// True if companies' providers can be reached.
    pub has_company: bool,
    /// True if browsers can have passkeys at this address.
    pub offers_passkeys: bool,
    /// Reason why the last passkey was refused; empty if there is none.
    pub passkey_fault: String,
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
    /// First site to monitor; none for an account that somebody uses already.
    pub site: Option<FirstSiteFields>,
    /// Reason that is not about a field; empty if there is none.
    pub problem: String,
    /// True where nothing encrypts the connection.
    pub is_plain_http: bool,
}

/// Form by which an invited person joins an account.
#[template_file("dashboard/join.html")]
#[derive(Debug, Clone)]
pub(crate) struct JoinForm {
    /// Token of the link.
    pub token: String,
    /// Email address of the invited person.
    pub email: String,
    /// Email address of the account.
    pub account: String,
    /// Role that they get.
    pub role: Role,
    /// How they prove their identity.
    pub proof: JoinProof,
    /// Email address of the person who is signed in at this browser; empty if nobody is.
    pub signed_in_as: String,
    /// Reason why the last try failed; empty if there is none.
    pub fault: String,
    /// Name that was entered.
    pub name: String,
    /// Fault of the name; empty if there is none.
    pub name_fault: String,
    /// Fault of the new password; empty if there is none.
    pub password_fault: String,
    /// True where nothing encrypts the connection.
    pub is_plain_http: bool,
}

/// How an invited person proves their identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JoinProof {
    /// A new person, who chooses a password.
    NewPassword,
    /// By their password.
    Password,
    /// By a sign-in before, with a mailed link.
    MailedLink,
    /// By the session of this browser.
    Session,
}

impl JoinForm {
    /// Role with its article.
    const fn role_words(&self) -> &'static str {
        match self.role {
            Role::Owner => "an owner",
            Role::Editor => "an editor",
            Role::Viewer => "a viewer",
        }
    }

    /// Permissions of the role.
    const fn may(&self) -> &'static str {
        members::role_text(self.role)
    }
}

/// Form that asks for a link for a new password.
#[template_file("dashboard/reset_request.html")]
#[derive(Debug, Clone)]
pub(crate) struct ResetRequestForm {
    /// Email address that was entered.
    pub email: String,
    /// Fault of the email address; empty if there is none.
    pub fault: String,
}

/// Form for a new password.
#[template_file("dashboard/reset.html")]
#[derive(Debug, Clone)]
pub(crate) struct ResetForm {
    /// Token of the link.
    pub token: String,
    /// Email address of the person, for the browser's password manager.
    pub email: String,
    /// Fault of the password; empty if there is none.
    pub fault: String,
    /// True where nothing encrypts the connection.
    pub is_plain_http: bool,
}

impl SetUpForm {
    /// True if the form was refused.
    fn has_faults(&self) -> bool {
        let site = self.site.as_ref();
        let of_site = site.is_some_and(|it| [&it.url_fault, &it.page_name_fault, &it.slug_fault].iter().any(is_set));
        of_site || [&self.email_fault, &self.name_fault, &self.password_fault, &self.problem].iter().any(is_set)
    }

    /// Hint of the password. A browser empties it when the form is drawn again.
    fn password_hint(&self) -> &'static str {
        if self.has_faults() { "At least 10 characters. Type it again." } else { "At least 10 characters." }
    }
}

fn is_set(text: &&String) -> bool {
    !text.is_empty()
}

/// Button of a valid sign-in link.
#[template_file("dashboard/link_button.html")]
#[derive(Debug, Clone)]
pub(crate) struct LinkButton {
    /// Token of the link.
    pub token: String,
}

/// Form by which a signed-in person confirms that it's them: by passkey, password or company.
#[template_file("dashboard/confirm.html")]
#[derive(Debug, Clone)]
pub(crate) struct ConfirmForm {
    /// Path to go to afterwards.
    pub next: String,
    /// Email address of the person, for the browser's password manager.
    pub email: String,
    /// False if the person signs in by mailed link alone.
    pub has_password: bool,
    /// Address of company sign-in for a person who signed in by it; empty for others.
    pub company: String,
    /// True if the browser keeps the session that they confirm.
    pub is_kept: bool,
    /// Token of the session's forms.
    pub form_token: String,
    /// Fault of the password; empty if there is none.
    pub fault: String,
    /// True if they have a passkey for this address.
    pub has_passkey: bool,
    /// Reason why the last passkey was refused; empty if there is none.
    pub passkey_fault: String,
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

/// Form for the email address that finds the provider.
#[template_file("dashboard/company_email.html")]
#[derive(Debug, Clone)]
pub(crate) struct CompanyEmailForm {
    /// Path to go to afterwards.
    pub next: String,
    /// Email address that was entered.
    pub email: String,
    /// True with "Keep me signed in".
    pub is_kept: bool,
    /// Reason why the last try failed; empty if there is none.
    pub fault: String,
    /// Address of the other ways to sign in.
    pub back: String,
}

/// Button that begins a company sign-in.
#[template_file("dashboard/company_button.html")]
#[derive(Debug, Clone)]
pub(crate) struct CompanyButton {
    /// Address of the form.
    pub action: String,
    /// Host of the provider.
    pub host: String,
    /// Path to go to afterwards.
    pub next: String,
}

/// Page that goes on to the provider.
#[template_file("dashboard/company_continue.html")]
#[derive(Debug, Clone)]
pub(crate) struct CompanyContinue {
    /// Address at the provider.
    pub url: String,
    /// Host of the provider.
    pub host: String,
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

html! { SignInForm SetUpForm JoinForm ResetRequestForm ResetForm LinkButton ConfirmForm MessagePage CompanyEmailForm
CompanyButton CompanyContinue }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_from_outside_is_escaped() {
        let evil = "\"><script>alert(1)</script>".to_owned();
        let sign_in = SignInForm {
            next: evil.clone(),
            email: evil.clone(),
            fault: Some(evil.clone()),
            sends_mail: true,
            has_company: true,
            offers_passkeys: true,
            passkey_fault: evil.clone(),
            is_plain_http: true,
        };
        let join = |proof| {
            let form = JoinForm {
                token: evil.clone(),
                email: evil.clone(),
                account: evil.clone(),
                role: Role::Editor,
                proof,
                signed_in_as: evil.clone(),
                fault: evil.clone(),
                name: evil.clone(),
                name_fault: evil.clone(),
                password_fault: evil.clone(),
                is_plain_http: true,
            };
            form.html()
        };
        let set_up = SetUpForm {
            token: evil.clone(),
            email: evil.clone(),
            has_email: false,
            email_fault: evil.clone(),
            name: evil.clone(),
            name_fault: evil.clone(),
            password_fault: evil.clone(),
            site: Some(FirstSiteFields {
                url: evil.clone(),
                url_fault: evil.clone(),
                page_name: evil.clone(),
                page_name_fault: evil.clone(),
                slug: evil.clone(),
                slug_fault: evil.clone(),
                page_base: evil.clone(),
                test: Some(FirstSiteTest::refused(&evil, &evil)),
            }),
            problem: evil.clone(),
            is_plain_http: false,
        };
        let confirm = ConfirmForm {
            next: evil.clone(),
            email: evil.clone(),
            has_password: true,
            company: evil.clone(),
            is_kept: true,
            form_token: evil.clone(),
            fault: evil.clone(),
            has_passkey: true,
            passkey_fault: evil.clone(),
        };
        for page in [
            sign_in.html(),
            set_up.html(),
            confirm.html(),
            join(JoinProof::NewPassword),
            join(JoinProof::Password),
            join(JoinProof::MailedLink),
            join(JoinProof::Session),
            ResetRequestForm { email: evil.clone(), fault: evil.clone() }.html(),
            ResetForm { token: evil.clone(), email: evil.clone(), fault: evil.clone(), is_plain_http: true }.html(),
            LinkButton { token: evil.clone() }.html(),
            MessagePage::new("Title", evil.clone()).with_link(&evil, "Link").html(),
        ] {
            assert!(page.contains("alert(1)") && !page.contains("<script>"), "{page}");
            assert!(!page.contains("style=") && page.contains("</html>"), "{page}");
        }
    }
}
