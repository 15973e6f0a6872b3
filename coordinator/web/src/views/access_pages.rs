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
#[template_file("public/access.html")]
#[derive(Debug, Clone)]
pub(crate) struct AccessPage {
    base: String,
    language: &'static str,
    title: &'static str,
    lead: &'static str,
    error: Option<String>,
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
    max_length: usize,
    value: String,
}

impl AccessPage {
    /// Password form.
    pub(crate) fn password(context: &AccessContext, to: &str) -> Self {
        let field = Field {
            name: "password",
            label: context.messages.password,
            kind: "password",
            autocomplete: "current-password",
            max_length: 1000,
            value: String::new(),
        };
        let form = AccessForm::new(context, "/password", ("to", to), Some(field), context.messages.continue_button);
        Self::new(context, context.messages.password_title, context.messages.password_lead).with_form(form)
    }

    /// Password form after a wrong password.
    pub(crate) fn wrong_password(context: &AccessContext, to: &str) -> Self {
        Self::password(context, to).with_error(context.messages.wrong_password)
    }

    /// Email form.
    pub(crate) fn email(context: &AccessContext, to: &str) -> Self {
        Self::email_with(context, to, "")
    }

    /// Email form after an invalid address.
    pub(crate) fn wrong_email(context: &AccessContext, to: &str, submitted: &str) -> Self {
        Self::email_with(context, to, submitted).with_error(context.messages.invalid_email)
    }

    /// Confirmation that a mail may have been sent.
    pub(crate) fn email_sent(context: &AccessContext) -> Self {
        Self::new(context, context.messages.form_mail_sent, context.messages.sign_in_sent_lead)
            .with_link(context, context.messages.other_address)
    }

    /// Button of a valid sign-in link.
    pub(crate) fn button(context: &AccessContext, token: &str) -> Self {
        let form = AccessForm::new(context, "/sign-in/link", ("t", token), None, context.messages.sign_in_title);
        Self::new(context, context.messages.sign_in_title, context.messages.sign_in_button_lead).with_form(form)
    }

    /// A valid sign-in link opened in another browser.
    pub(crate) fn other_browser(context: &AccessContext) -> Self {
        Self::new(context, context.messages.other_browser_title, context.messages.other_browser_lead)
            .with_link(context, context.messages.request_link_here)
    }

    /// An invalid or expired sign-in link.
    pub(crate) fn invalid_link(context: &AccessContext) -> Self {
        Self::new(context, context.messages.form_invalid_link, context.messages.expired_link_lead)
            .with_link(context, context.messages.new_link)
    }

    /// Too many attempts.
    pub(crate) fn too_many_attempts(context: &AccessContext, seconds: u32) -> Self {
        let page = Self::new(context, context.messages.too_many_attempts, context.messages.too_many_attempts_lead);
        page.with_error(&fill(context.messages.retry_in, &[&seconds.to_string()]))
    }

    /// "Not found" page for an unknown address; `base` is the path prefix of assets.
    pub(crate) fn not_found(base: &str) -> Self {
        let messages = in_english();
        let context = AccessContext { root: String::new(), base: base.to_owned(), messages };
        Self::new(&context, messages.form_not_found, messages.not_found_text)
    }

    /// Renders the page as HTML.
    pub(crate) fn html(&self) -> String {
        // Rendering to memory does not fail.
        self.render().unwrap_or_default()
    }

    fn email_with(context: &AccessContext, to: &str, submitted: &str) -> Self {
        let field = Field {
            name: "email",
            label: context.messages.email,
            kind: "email",
            autocomplete: "email",
            max_length: 254,
            value: submitted.to_owned(),
        };
        let form = AccessForm::new(context, "/sign-in", ("to", to), Some(field), context.messages.send_link);
        Self::new(context, context.messages.sign_in_title, context.messages.sign_in_lead).with_form(form)
    }

    fn new(context: &AccessContext, title: &'static str, lead: &'static str) -> Self {
        let (base, language) = (context.base.clone(), context.messages.language.tag());
        Self { base, language, title, lead, error: None, form: None, link: None }
    }

    fn with_form(self, form: AccessForm) -> Self {
        Self { form: Some(form), ..self }
    }

    fn with_error(self, error: &str) -> Self {
        Self { error: Some(error.to_owned()), ..self }
    }

    fn with_link(self, context: &AccessContext, text: &'static str) -> Self {
        Self { link: Some((format!("{}/sign-in", context.root), text)), ..self }
    }
}

impl AccessForm {
    fn new(
        context: &AccessContext,
        path: &str,
        (name, value): (&'static str, &str),
        field: Option<Field>,
        button: &'static str,
    ) -> Self {
        let action = format!("{}{path}", context.root);
        Self { action, hidden: (name, value.to_owned()), field, button }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn submitted_text_is_escaped_on_sign_in_pages() {
        let context = AccessContext { root: "/p/shop".to_owned(), base: String::new(), messages: in_english() };
        let evil = "\"><script>alert(1)</script>";
        let page = AccessPage::wrong_email(&context, evil, evil).html();
        assert!(page.contains("alert(1)") && !page.contains("<script>"), "{page}");
        let button = AccessPage::button(&context, evil).html();
        assert!(button.contains("action=\"/p/shop/sign-in/link\"") && !button.contains("<script>"), "{button}");
    }
}
