//! Sign-in pages of a protected status page: they ask for a password or an email address and reveal nothing
//! about the page.

use askama::Template;
use parallax_i18n::page_messages::{PageMessages, fill, in_english};
use parallax_template::template_file;

use super::assets;

/// Context of a sign-in page.
#[derive(Debug, Clone)]
pub(crate) struct AccessContext {
    /// Path prefix of the protected page.
    pub root: String,
    /// Path prefix of assets.
    pub base: String,
    /// Texts in the page's language.
    pub messages: &'static PageMessages,
}

/// A sign-in page.
#[template_file("public/door.html")]
#[derive(Debug, Clone)]
pub(crate) struct AccessPage {
    base: String,
    language: &'static str,
    title: &'static str,
    lead: &'static str,
    fault: Option<String>,
    form: Option<AccessForm>,
    /// Link to the next step: path and text.
    link: Option<(String, &'static str)>,
}

#[derive(Debug, Clone)]
struct AccessForm {
    action: String,
    /// Hidden field.
    hidden: (&'static str, String),
    field: Option<Field>,
    button: &'static str,
}

#[derive(Debug, Clone)]
struct Field {
    name: &'static str,
    label: &'static str,
    kind: &'static str,
    autocomplete: &'static str,
    most: usize,
    value: String,
}

impl AccessPage {
    /// Password form.
    pub(crate) fn password(place: &AccessContext, to: &str) -> Self {
        let field = Field {
            name: "password",
            label: place.messages.password,
            kind: "password",
            autocomplete: "current-password",
            most: 1000,
            value: String::new(),
        };
        let form = AccessForm::new(place, "/password", ("to", to), Some(field), place.messages.continue_button);
        Self::new(place, place.messages.password_title, place.messages.password_lead).with_form(form)
    }

    /// Password form after a wrong password.
    pub(crate) fn wrong_password(place: &AccessContext, to: &str) -> Self {
        Self::password(place, to).with_error(place.messages.wrong_password)
    }

    /// Email form.
    pub(crate) fn email(place: &AccessContext, to: &str) -> Self {
        Self::email_with(place, to, "")
    }

    /// Email form after an invalid address.
    pub(crate) fn wrong_email(place: &AccessContext, to: &str, typed: &str) -> Self {
        Self::email_with(place, to, typed).with_error(place.messages.fault_email)
    }

    /// Confirmation that a mail may have been sent.
    pub(crate) fn email_sent(place: &AccessContext) -> Self {
        Self::new(place, place.messages.form_mail_sent, place.messages.sign_in_sent_lead)
            .with_link(place, place.messages.other_address)
    }

    /// Button of a valid sign-in link.
    pub(crate) fn button(place: &AccessContext, token: &str) -> Self {
        let form = AccessForm::new(place, "/sign-in/link", ("t", token), None, place.messages.sign_in_title);
        Self::new(place, place.messages.sign_in_title, place.messages.sign_in_button_lead).with_form(form)
    }

    /// A valid sign-in link opened in another browser.
    pub(crate) fn other_browser(place: &AccessContext) -> Self {
        Self::new(place, place.messages.other_browser_title, place.messages.other_browser_lead)
            .with_link(place, place.messages.request_link_here)
    }

    /// An invalid or expired sign-in link.
    pub(crate) fn invalid_link(place: &AccessContext) -> Self {
        Self::new(place, place.messages.form_invalid_link, place.messages.expired_link_lead)
            .with_link(place, place.messages.new_link)
    }

    /// Too many attempts.
    pub(crate) fn too_many_attempts(place: &AccessContext, seconds: u32) -> Self {
        let page = Self::new(place, place.messages.too_many_attempts, place.messages.too_many_attempts_lead);
        page.with_error(&fill(place.messages.again_in, &[&seconds.to_string()]))
    }

    /// "Not found" page for an unknown address; `base` is the path prefix of assets.
    pub(crate) fn not_found(base: &str) -> Self {
        let messages = in_english();
        let place = AccessContext { root: String::new(), base: base.to_owned(), messages };
        Self::new(&place, messages.form_not_found, messages.not_found_text)
    }

    /// Renders the page as HTML.
    pub(crate) fn html(&self) -> String {
        // Rendering to memory does not fail.
        self.render().unwrap_or_default()
    }

    fn email_with(place: &AccessContext, to: &str, typed: &str) -> Self {
        let field = Field {
            name: "email",
            label: place.messages.email,
            kind: "email",
            autocomplete: "email",
            most: 254,
            value: typed.to_owned(),
        };
        let form = AccessForm::new(place, "/sign-in", ("to", to), Some(field), place.messages.send_link);
        Self::new(place, place.messages.sign_in_title, place.messages.sign_in_lead).with_form(form)
    }

    fn new(place: &AccessContext, title: &'static str, lead: &'static str) -> Self {
        let (base, language) = (place.base.clone(), place.messages.language.tag());
        Self { base, language, title, lead, fault: None, form: None, link: None }
    }

    fn with_form(self, form: AccessForm) -> Self {
        Self { form: Some(form), ..self }
    }

    fn with_error(self, fault: &str) -> Self {
        Self { fault: Some(fault.to_owned()), ..self }
    }

    fn with_link(self, place: &AccessContext, words: &'static str) -> Self {
        Self { link: Some((format!("{}/sign-in", place.root), words)), ..self }
    }
}

impl AccessForm {
    fn new(
        place: &AccessContext,
        path: &str,
        (name, value): (&'static str, &str),
        field: Option<Field>,
        button: &'static str,
    ) -> Self {
        let action = format!("{}{path}", place.root);
        Self { action, hidden: (name, value.to_owned()), field, button }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_typed_is_text() {
        let place = AccessContext { root: "/p/shop".to_owned(), base: String::new(), messages: in_english() };
        let evil = "\"><script>alert(1)</script>";
        let page = AccessPage::wrong_email(&place, evil, evil).html();
        assert!(page.contains("alert(1)") && !page.contains("<script>"), "{page}");
        let button = AccessPage::button(&place, evil).html();
        assert!(button.contains("action=\"/p/shop/sign-in/link\"") && !button.contains("<script>"), "{button}");
    }
}
