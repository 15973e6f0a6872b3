//! The small pages before a guarded page: they ask for a password or an address, and say nothing of what is behind.

use askama::Template;

use super::assets;

/// Where such a page stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// What the paths of the page behind begin with.
    pub root: String,
    /// What the paths of files begin with.
    pub base: String,
}

/// A page of the way in.
#[derive(Debug, Clone, Template)]
#[template(path = "public/door.html")]
pub struct DoorPage {
    base: String,
    title: &'static str,
    lead: &'static str,
    fault: Option<String>,
    form: Option<Form>,
    /// A way on: its path and its words.
    link: Option<(String, &'static str)>,
}

#[derive(Debug, Clone)]
struct Form {
    action: String,
    /// What is sent along.
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
    /// Asks for the password.
    pub fn password(place: &Place, to: &str) -> Self {
        let field = Field {
            name: "password",
            label: "Password",
            kind: "password",
            autocomplete: "current-password",
            most: 1000,
            value: String::new(),
        };
        let form = Form::new(place, "/password", ("to", to), Some(field), "Continue");
        Self::new(place, "Password needed", "This status page is for those who know its password.")
            .asking(form)
    }

    /// The same, after a wrong one.
    pub fn wrong_password(place: &Place, to: &str) -> Self {
        Self::password(place, to).saying("That is not the password.")
    }

    /// Asks for an address.
    pub fn email(place: &Place, to: &str) -> Self {
        Self::email_with(place, to, "")
    }

    /// The same, after what is no address.
    pub fn wrong_email(place: &Place, to: &str, typed: &str, fault: &str) -> Self {
        Self::email_with(place, to, typed).saying(fault)
    }

    /// A mail may be on its way.
    pub fn sent(place: &Place) -> Self {
        let lead = "If this address may see the page, a mail with a link is on its way. Open it in this browser within \
                    15 minutes. An address gets three such mails an hour at most.";
        Self::new(place, "Look into your mailbox", lead).leading(place, "Use another address")
    }

    /// The button of a good link.
    pub fn button(place: &Place, token: &str) -> Self {
        let form = Form::new(place, "/sign-in/link", ("t", token), None, "Sign in");
        Self::new(place, "Sign in", "One more click, so that no program signs in for you.").asking(form)
    }

    /// A good link in another browser.
    pub fn elsewhere(place: &Place) -> Self {
        let lead = "A link works in the browser that asked for it. Copy the link from the mail and open it there, or \
                    ask for another one here.";
        Self::new(place, "This link belongs to another browser", lead).leading(place, "Ask for a link here")
    }

    /// A link that is good for nothing.
    pub fn dead(place: &Place) -> Self {
        let lead = "A link works once, within 15 minutes.";
        Self::new(place, "This link is not valid", lead).leading(place, "Ask for a new link")
    }

    /// More tries than are taken.
    pub fn too_many(place: &Place, seconds: u32) -> Self {
        let page = Self::new(place, "Too many tries", "Please wait a little, then go back and try again.");
        page.saying(&format!("Again in {seconds} seconds."))
    }

    /// The page as HTML.
    pub fn html(&self) -> String {
        // Writing to memory does not fail.
        self.render().unwrap_or_default()
    }

    fn email_with(place: &Place, to: &str, typed: &str) -> Self {
        let field = Field {
            name: "email",
            label: "Email",
            kind: "email",
            autocomplete: "email",
            most: 254,
            value: typed.to_owned(),
        };
        let form = Form::new(place, "/sign-in", ("to", to), Some(field), "Send me a link");
        let lead = "This status page is for people whom its owner has chosen. Those get a link by mail.";
        Self::new(place, "Sign in", lead).asking(form)
    }

    fn new(place: &Place, title: &'static str, lead: &'static str) -> Self {
        Self { base: place.base.clone(), title, lead, fault: None, form: None, link: None }
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
        let place = Place { root: "/p/shop".to_owned(), base: String::new() };
        let evil = "\"><script>alert(1)</script>";
        let page = DoorPage::wrong_email(&place, evil, evil, evil).html();
        assert!(page.contains("alert(1)") && !page.contains("<script"), "{page}");
        let button = DoorPage::button(&place, evil).html();
        assert!(
            button.contains("action=\"/p/shop/sign-in/link\"") && !button.contains("<script"),
            "{button}"
        );
    }
}
