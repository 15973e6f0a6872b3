//! Sign-in pages of a protected status page: they ask for a password or an email address and reveal nothing
//! about the page.

use askama::Template;

use super::assets;
use super::tongue::{Words, fill, in_english};

/// Context of a sign-in page.
#[derive(Debug, Clone)]
pub struct Place {
    /// Path prefix of the protected page.
    pub root: String,
    /// Path prefix of assets.
    pub base: String,
    /// Texts in the page's language.
    pub said: &'static Words,
}

/// A sign-in page.
#[derive(Debug, Clone, Template)]
#[template(path = "public/door.html")]
pub struct DoorPage {
    base: String,
    language: &'static str,
    title: &'static str,
    lead: &'static str,
    fault: Option<String>,
    form: Option<Form>,
    /// Link to the next step: path and text.
    link: Option<(String, &'static str)>,
}

#[derive(Debug, Clone)]
struct Form {
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

impl DoorPage {
    /// Password form.
    pub fn password(place: &Place, to: &str) -> Self {
        let field = Field {
            name: "password",
            label: place.said.password,
            kind: "password",
            autocomplete: "current-password",
            most: 1000,
            value: String::new(),
        };
        let form = Form::new(place, "/password", ("to", to), Some(field), place.said.go_on);
        Self::new(place, place.said.door_password, place.said.door_password_lead).asking(form)
    }

    /// Password form after a wrong password.
    pub fn wrong_password(place: &Place, to: &str) -> Self {
        Self::password(place, to).saying(place.said.wrong_password)
    }

    /// Email form.
    pub fn email(place: &Place, to: &str) -> Self {
        Self::email_with(place, to, "")
    }

    /// Email form after an invalid address.
    pub fn wrong_email(place: &Place, to: &str, typed: &str) -> Self {
        Self::email_with(place, to, typed).saying(place.said.fault_email)
    }

    /// Confirmation that a mail may have been sent.
    pub fn sent(place: &Place) -> Self {
        Self::new(place, place.said.form_mailed, place.said.door_sent_lead)
            .leading(place, place.said.other_address)
    }

    /// Button of a valid sign-in link.
    pub fn button(place: &Place, token: &str) -> Self {
        let form = Form::new(place, "/sign-in/link", ("t", token), None, place.said.door_sign_in);
        Self::new(place, place.said.door_sign_in, place.said.door_button_lead).asking(form)
    }

    /// A valid sign-in link opened in another browser.
    pub fn elsewhere(place: &Place) -> Self {
        Self::new(place, place.said.door_elsewhere, place.said.door_elsewhere_lead)
            .leading(place, place.said.ask_here)
    }

    /// An invalid or expired sign-in link.
    pub fn dead(place: &Place) -> Self {
        Self::new(place, place.said.form_void, place.said.door_dead_lead).leading(place, place.said.new_link)
    }

    /// Too many attempts.
    pub fn too_many(place: &Place, seconds: u32) -> Self {
        let page = Self::new(place, place.said.door_many, place.said.door_many_lead);
        page.saying(&fill(place.said.again_in, &[&seconds.to_string()]))
    }

    /// "Not found" page for an unknown address; `base` is the path prefix of assets.
    pub fn nothing(base: &str) -> Self {
        let said = in_english();
        let place = Place { root: String::new(), base: base.to_owned(), said };
        Self::new(&place, said.form_nowhere, said.nowhere_text)
    }

    /// Renders the page as HTML.
    pub fn html(&self) -> String {
        // Rendering to memory does not fail.
        self.render().unwrap_or_default()
    }

    fn email_with(place: &Place, to: &str, typed: &str) -> Self {
        let field = Field {
            name: "email",
            label: place.said.email,
            kind: "email",
            autocomplete: "email",
            most: 254,
            value: typed.to_owned(),
        };
        let form = Form::new(place, "/sign-in", ("to", to), Some(field), place.said.send_link);
        Self::new(place, place.said.door_sign_in, place.said.door_sign_in_lead).asking(form)
    }

    fn new(place: &Place, title: &'static str, lead: &'static str) -> Self {
        let (base, language) = (place.base.clone(), place.said.language.tag());
        Self { base, language, title, lead, fault: None, form: None, link: None }
    }

    fn asking(self, form: Form) -> Self {
        Self { form: Some(form), ..self }
    }

    fn saying(self, fault: &str) -> Self {
        Self { fault: Some(fault.to_owned()), ..self }
    }

    fn leading(self, place: &Place, words: &'static str) -> Self {
        Self { link: Some((format!("{}/sign-in", place.root), words)), ..self }
    }
}

impl Form {
    fn new(
        place: &Place,
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
        let place = Place { root: "/p/shop".to_owned(), base: String::new(), said: in_english() };
        let evil = "\"><script>alert(1)</script>";
        let page = DoorPage::wrong_email(&place, evil, evil).html();
        assert!(page.contains("alert(1)") && !page.contains("<script>"), "{page}");
        let button = DoorPage::button(&place, evil).html();
        assert!(
            button.contains("action=\"/p/shop/sign-in/link\"") && !button.contains("<script>"),
            "{button}"
        );
    }
}
