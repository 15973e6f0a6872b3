//! The forms by which visitors subscribe, confirm, choose and leave, and what they are told on the way.

use std::collections::BTreeSet;

use askama::Template;
use parallax_core::id::MonitorId;
use parallax_core::page::Page;
use parallax_core::refusal::Refusals;
use parallax_core::time::Timestamp;

use super::assets;
use super::page::Frame;
use super::tongue::words;

/// What was typed, and what is wrong with it.
#[derive(Debug, Clone, Default)]
pub struct Form {
    /// The mailbox.
    pub email: Option<String>,
    /// The address of a webhook.
    pub url: Option<String>,
    /// What is wrong.
    pub faults: Refusals,
}

/// That nothing is wrong.
static NOTHING: Refusals = Refusals::none();

impl Form {
    /// What is wrong with the form for mailboxes.
    fn of_mail(&self) -> &Refusals {
        if self.url.is_none() { &self.faults } else { &NOTHING }
    }

    /// What is wrong with the form for webhooks.
    fn of_webhook(&self) -> &Refusals {
        if self.url.is_some() { &self.faults } else { &NOTHING }
    }
}

/// A page's monitors by id and name, and those that are chosen; none chosen means the whole page.
#[derive(Debug, Clone)]
pub struct Choice {
    all: Vec<(String, String)>,
    chosen: Option<BTreeSet<String>>,
}

impl Choice {
    /// The choice among those, with these ids chosen.
    pub fn of(all: &[(MonitorId, String)], chosen: Option<&[String]>) -> Self {
        Self {
            all: all.iter().map(|(id, name)| (id.to_string(), name.clone())).collect(),
            chosen: chosen.map(|ids| ids.iter().cloned().collect()),
        }
    }

    fn has(&self, id: &str) -> bool {
        self.chosen.as_ref().is_some_and(|ids| ids.contains(id))
    }
}

/// Where a visitor stands.
#[derive(Debug, Clone)]
pub enum Step {
    /// Asks to be told.
    Ask {
        /// What was typed before.
        form: Form,
        /// What can be chosen.
        choice: Choice,
        /// Where programs that keep no cookies read it, for a page that not everybody may see.
        programs: Option<String>,
    },
    /// Gave a mailbox; hears the same whatever there is to it.
    Mailed,
    /// Gave a webhook; hears the same whatever there is to it.
    Challenged {
        /// What deliveries are signed with.
        secret: String,
        /// The link's value.
        link: String,
    },
    /// Confirms, or changes what is told.
    Choose {
        /// The mailbox or the webhook.
        address: String,
        /// Whether it was never confirmed.
        is_new: bool,
        /// The link's value.
        link: String,
        /// What can be chosen.
        choice: Choice,
        /// What is wrong with what was chosen.
        faults: Refusals,
    },
    /// Has confirmed.
    Confirmed {
        /// The link's value.
        link: String,
    },
    /// Is about to leave.
    Leave {
        /// The link's value.
        link: String,
    },
    /// Has left.
    Left,
    /// Came by a link that is good for nothing.
    Void,
    /// Says whether alerts may come to this mailbox.
    WantAlerts {
        /// The mailbox.
        mailbox: String,
        /// The link's value.
        link: String,
    },
    /// Has said that they may.
    AlertsWanted {
        /// The mailbox.
        mailbox: String,
    },
    /// Says whether alerts to this mailbox are to stop.
    StopAlerts {
        /// The mailbox.
        mailbox: String,
        /// The link's value.
        link: String,
    },
    /// Has said that they are.
    AlertsStopped {
        /// The mailbox.
        mailbox: String,
    },
    /// Came to say so by a link that is good for nothing.
    AlertsTooLate,
    /// Sent more wishes than are taken.
    TooMany,
    /// Came to where nothing is.
    Nowhere,
}

/// The document of a step.
#[derive(Debug, Clone, Template)]
#[template(path = "public/forms.html")]
pub struct FormPage {
    frame: Frame,
    title: &'static str,
    step: Step,
}

impl FormPage {
    /// The document of a step on that page, whose paths begin with `root`.
    pub fn new(page: &Page, root: &str, step: Step, now: Timestamp) -> Self {
        let words = words(page.language);
        let title = match &step {
            Step::Ask { .. } => words.get_updates,
            Step::Mailed => words.form_mailed,
            Step::Challenged { .. } => words.form_challenged,
            Step::Choose { is_new: true, .. } => words.form_confirm,
            Step::Choose { is_new: false, .. } => words.form_choose,
            Step::Confirmed { .. } => words.form_done,
            Step::Leave { .. } => words.form_leave,
            Step::Left => words.form_left,
            Step::Void | Step::AlertsTooLate => words.form_void,
            Step::WantAlerts { .. } => words.form_alerts,
            Step::AlertsWanted { .. } => words.form_done,
            Step::StopAlerts { .. } => words.form_stop,
            Step::AlertsStopped { .. } => words.form_stopped,
            Step::TooMany => words.form_many,
            Step::Nowhere => words.form_nowhere,
        };
        Self { frame: Frame::new(page, root, title, now), title, step }
    }

    /// What is wrong with a field, in words for people.
    fn fault(&self, faults: &Refusals, field: &str) -> Option<String> {
        faults.iter().find(|fault| fault.field == field).map(|fault| self.frame.t.fault(fault))
    }

    /// The document as HTML.
    pub fn html(&self) -> String {
        // Writing to memory does not fail.
        self.render().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::views::tests::{NOW, page};

    fn document(root: &str, step: Step) -> String {
        FormPage::new(&page(), root, step, NOW).html()
    }

    #[test]
    fn what_a_form_loads_lies_below_the_base_url_or_on_the_pages_own_host() {
        for (root, assets) in [
            ("/status/p/northwind", "\"/status/assets/site-"),
            ("/p/northwind", "\"/assets/site-"),
            ("", "\"/assets/site-"),
        ] {
            let document = document(root, Step::Mailed);
            assert!(document.contains(assets), "{root}: {document}");
        }
    }

    #[test]
    fn what_is_wrong_stands_at_its_field_in_the_form_that_was_sent() {
        let choice = Choice::of(&[(MonitorId::from_u128(1), "Web shop".to_owned())], None);
        let typed = || Some("nonsense".to_owned());
        for (email, url, field, (told, at), is_unfolded) in [
            (typed(), None, "email", ("Please enter a valid email address.", "email"), false),
            (None, typed(), "url", ("Please enter an http or https address", "url"), true),
            (typed(), None, "monitors", ("Please choose at least one", "choice"), false),
            (None, typed(), "page", ("This page has as many subscribers", "full"), true),
        ] {
            let form = Form { email, url, faults: Refusals::one(field, "is wrong") };
            let document = document("", Step::Ask { form, choice: choice.clone(), programs: None });
            let (mail, hook) = document.split_once("<details class=\"more way\"").unwrap();
            assert_eq!(hook.starts_with(" open>"), is_unfolded, "{field}");
            let (sent, other) = if is_unfolded { (hook, mail) } else { (mail, hook) };
            let told = [format!(" role=\"alert\" id=\"{at}"), told.to_owned()];
            assert!(told.iter().all(|it| sent.matches(it).count() == 1), "{field}: {sent}");
            assert!(!other.contains("role=\"alert\""), "{field}: {other}");
            assert_eq!(sent.contains(" autofocus"), field != "page", "{field}: {sent}");
            assert_eq!(sent.contains("aria-describedby"), field != "page", "{field}: {sent}");
        }
    }

    #[test]
    fn whatever_people_typed_is_text() {
        let nasty = "\"><script>alert(1)</script>".to_owned();
        let choice = Choice::of(&[(MonitorId::from_u128(1), nasty.clone())], None);
        let form = Form { email: Some(nasty.clone()), url: Some(nasty.clone()), ..Form::default() };
        let faults = Refusals::one("email", "must be \"<b>\"");
        for step in [
            Step::Ask { form, choice: choice.clone(), programs: Some(nasty.clone()) },
            Step::Challenged { secret: nasty.clone(), link: nasty.clone() },
            Step::Choose { address: nasty.clone(), is_new: true, link: nasty.clone(), choice, faults },
            Step::Confirmed { link: nasty.clone() },
            Step::WantAlerts { mailbox: nasty.clone(), link: nasty.clone() },
            Step::AlertsWanted { mailbox: nasty.clone() },
            Step::StopAlerts { mailbox: nasty.clone(), link: nasty.clone() },
            Step::AlertsStopped { mailbox: nasty.clone() },
            Step::Leave { link: nasty },
        ] {
            let document = document("/p/northwind", step);
            assert!(!document.contains("<script>") && !document.contains("\"<b>"), "{document}");
        }
    }
}
