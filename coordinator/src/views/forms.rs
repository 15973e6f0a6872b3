//! Subscription forms: subscribe, confirm, choose monitors, unsubscribe, and the messages in between.

use std::collections::BTreeSet;

use askama::Template;
use parallax_core::id::MonitorId;
use parallax_core::page::Page;
use parallax_core::refusal::Refusals;
use parallax_core::time::Timestamp;

use super::assets;
use super::page::Frame;
use super::tongue::words;

/// Submitted values and their validation errors.
#[derive(Debug, Clone, Default)]
pub struct Form {
    /// Email address.
    pub email: Option<String>,
    /// Webhook URL.
    pub url: Option<String>,
    /// Validation errors.
    pub faults: Refusals,
}

/// No errors.
static NOTHING: Refusals = Refusals::none();

impl Form {
    /// Errors of the email form.
    fn of_mail(&self) -> &Refusals {
        if self.url.is_none() { &self.faults } else { &NOTHING }
    }

    /// Errors of the webhook form.
    fn of_webhook(&self) -> &Refusals {
        if self.url.is_some() { &self.faults } else { &NOTHING }
    }
}

/// A page's monitors by id and name, and the chosen ones; none means the whole page.
#[derive(Debug, Clone)]
pub struct Choice {
    all: Vec<(String, String)>,
    chosen: Option<BTreeSet<String>>,
}

impl Choice {
    /// Builds the choice from all monitors and the chosen ids.
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

/// Step of a subscription.
#[derive(Debug, Clone)]
pub enum Step {
    /// Subscription form.
    Ask {
        /// Previously submitted values.
        form: Form,
        /// Selectable monitors.
        choice: Choice,
        /// Feed URL with a token for programs without cookies, on a protected page.
        programs: Option<String>,
    },
    /// An email address was submitted; the response is the same whether it is known or not.
    Mailed,
    /// A webhook was submitted; the response is the same whether it is known or not.
    Challenged {
        /// Signing secret of deliveries.
        secret: String,
        /// Token of the link.
        link: String,
    },
    /// Confirmation, or change of the chosen monitors.
    Choose {
        /// Email address or webhook URL.
        address: String,
        /// True if not confirmed yet.
        is_new: bool,
        /// Token of the link.
        link: String,
        /// Selectable monitors.
        choice: Choice,
        /// Validation errors of the choice.
        faults: Refusals,
    },
    /// Confirmed.
    Confirmed {
        /// Token of the link.
        link: String,
    },
    /// Unsubscribe form.
    Leave {
        /// Token of the link.
        link: String,
    },
    /// Unsubscribed.
    Left,
    /// Invalid or expired link.
    Void,
    /// Form that asks whether a mailbox wants alerts.
    WantAlerts {
        /// Email address.
        mailbox: String,
        /// Token of the link.
        link: String,
    },
    /// Alerts confirmed.
    AlertsWanted {
        /// Email address.
        mailbox: String,
    },
    /// Form to stop alerts to a mailbox.
    StopAlerts {
        /// Email address.
        mailbox: String,
        /// Token of the link.
        link: String,
    },
    /// Alerts stopped.
    AlertsStopped {
        /// Email address.
        mailbox: String,
    },
    /// Invalid or expired link to confirm or stop alerts.
    AlertsTooLate,
    /// Too many requests.
    TooMany,
    /// Not found.
    Nowhere,
}

/// HTML page of a step.
#[derive(Debug, Clone, Template)]
#[template(path = "public/forms.html")]
pub struct FormPage {
    frame: Frame,
    title: &'static str,
    step: Step,
}

impl FormPage {
    /// Builds the page of a step; its paths begin with `root`.
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

    /// Validation error of a field in the page's language.
    fn fault(&self, faults: &Refusals, field: &str) -> Option<String> {
        faults.iter().find(|fault| fault.field == field).map(|fault| self.frame.t.fault(fault))
    }

    /// Renders the page as HTML.
    pub fn html(&self) -> String {
        // Rendering to memory does not fail.
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
            (None, typed(), "page", ("This page has reached its subscriber limit", "full"), true),
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
