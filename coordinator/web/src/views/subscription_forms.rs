//! Subscription forms: subscribe, confirm, choose monitors, unsubscribe, and the messages in between.

use std::collections::BTreeSet;

use askama::Template;
use parallax_core::id::MonitorId;
use parallax_core::page::Page;
use parallax_core::time::Timestamp;
use parallax_core::validation::ValidationErrors;
use parallax_i18n::page_messages::messages;
use parallax_template::template_file;

use super::assets;
use super::frame::PageFrame;

/// Submitted values and their validation errors.
#[derive(Debug, Clone, Default)]
pub(crate) struct SubscriptionInput {
    /// Email address.
    pub email: Option<String>,
    /// Webhook URL.
    pub url: Option<String>,
    /// Validation errors.
    pub errors: ValidationErrors,
}

/// No errors.
static NO_ERRORS: ValidationErrors = ValidationErrors::new();

impl SubscriptionInput {
    /// Errors of the email form.
    fn mail_errors(&self) -> &ValidationErrors {
        if self.url.is_none() { &self.errors } else { &NO_ERRORS }
    }

    /// Errors of the webhook form.
    fn webhook_errors(&self) -> &ValidationErrors {
        if self.url.is_some() { &self.errors } else { &NO_ERRORS }
    }
}

/// A page's monitors by id and name, and the chosen ones; none means the whole page.
#[derive(Debug, Clone)]
pub(crate) struct MonitorChoice {
    all: Vec<(String, String)>,
    chosen: Option<BTreeSet<String>>,
}

impl MonitorChoice {
    /// Builds the choice from all monitors and the chosen ids.
    pub(crate) fn of(all: &[(MonitorId, String)], chosen: Option<&[String]>) -> Self {
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
pub(crate) enum SubscriptionStep {
    /// Subscription form.
    Subscribe {
        /// Previously submitted values.
        form: SubscriptionInput,
        /// Selectable monitors.
        choice: MonitorChoice,
        /// Feed URL with a token for programs without cookies, on a protected page.
        programs: Option<String>,
    },
    /// An email address was submitted; the response is the same whether it is known or not.
    MailSent,
    /// A webhook was submitted; the response is the same whether it is known or not.
    ChallengeSent {
        /// Signing secret of deliveries.
        secret: String,
        /// Token of the link.
        link: String,
    },
    /// Confirmation, or change of the chosen monitors.
    EditSubscription {
        /// Email address or webhook URL.
        address: String,
        /// True if not confirmed yet.
        is_new: bool,
        /// Token of the link.
        link: String,
        /// Selectable monitors.
        choice: MonitorChoice,
        /// Validation errors of the choice.
        faults: ValidationErrors,
    },
    /// Confirmed.
    Confirmed {
        /// Token of the link.
        link: String,
    },
    /// Unsubscribe form.
    Unsubscribe {
        /// Token of the link.
        link: String,
    },
    /// Unsubscribed.
    Unsubscribed,
    /// Invalid or expired link.
    InvalidLink,
    /// Form that asks whether a mailbox wants alerts.
    ConfirmAlerts {
        /// Email address.
        mailbox: String,
        /// Token of the link.
        link: String,
    },
    /// Alerts confirmed.
    AlertsConfirmed {
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
    InvalidAlertLink,
    /// Too many requests.
    TooManyRequests,
    /// Not found.
    NotFound,
}

/// HTML page of a step.
#[template_file("public/forms.html")]
#[derive(Debug, Clone)]
pub(crate) struct SubscriptionPage {
    frame: PageFrame,
    title: &'static str,
    step: SubscriptionStep,
}

impl SubscriptionPage {
    /// Builds the page of a step; its paths begin with `root`.
    pub(crate) fn new(page: &Page, root: &str, step: SubscriptionStep, now: Timestamp) -> Self {
        let messages = messages(page.language);
        let title = match &step {
            SubscriptionStep::Subscribe { .. } => messages.get_updates,
            SubscriptionStep::MailSent => messages.form_mail_sent,
            SubscriptionStep::ChallengeSent { .. } => messages.form_challenge_sent,
            SubscriptionStep::EditSubscription { is_new: true, .. } => messages.form_confirm,
            SubscriptionStep::EditSubscription { is_new: false, .. } => messages.form_choose,
            SubscriptionStep::Confirmed { .. } => messages.form_done,
            SubscriptionStep::Unsubscribe { .. } => messages.form_unsubscribe,
            SubscriptionStep::Unsubscribed => messages.form_unsubscribed,
            SubscriptionStep::InvalidLink | SubscriptionStep::InvalidAlertLink => messages.form_invalid_link,
            SubscriptionStep::ConfirmAlerts { .. } => messages.form_alerts,
            SubscriptionStep::AlertsConfirmed { .. } => messages.form_done,
            SubscriptionStep::StopAlerts { .. } => messages.form_stop,
            SubscriptionStep::AlertsStopped { .. } => messages.form_stopped,
            SubscriptionStep::TooManyRequests => messages.form_too_many,
            SubscriptionStep::NotFound => messages.form_not_found,
        };
        Self { frame: PageFrame::new(page, root, title, now), title, step }
    }

    /// Validation error of a field in the page's language.
    fn field_error(&self, errors: &ValidationErrors, field: &str) -> Option<String> {
        errors.iter().find(|error| error.field == field).map(|error| self.frame.t.field_error(error))
    }

    /// Renders the page as HTML.
    pub(crate) fn html(&self) -> String {
        // Rendering to memory does not fail.
        self.render().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::views::tests::{NOW, page};

    fn document(root: &str, step: SubscriptionStep) -> String {
        SubscriptionPage::new(&page(), root, step, NOW).html()
    }

    #[test]
    fn a_form_loads_its_assets_from_the_base_url_or_the_pages_own_host() {
        for (root, assets) in [
            ("/status/p/northwind", "\"/status/assets/site-"),
            ("/p/northwind", "\"/assets/site-"),
            ("", "\"/assets/site-"),
        ] {
            let document = document(root, SubscriptionStep::MailSent);
            assert!(document.contains(assets), "{root}: {document}");
        }
    }

    #[test]
    fn validation_errors_are_shown_at_their_field_of_the_submitted_form() {
        let choice = MonitorChoice::of(&[(MonitorId::from_u128(1), "Web shop".to_owned())], None);
        let submitted = || Some("nonsense".to_owned());
        for (email, url, field, (error_text, error_id), is_expanded) in [
            (submitted(), None, "email", ("Please enter a valid email address.", "email"), false),
            (None, submitted(), "url", ("Please enter an http or https address", "url"), true),
            (submitted(), None, "monitors", ("Please choose at least one", "choice"), false),
            (None, submitted(), "page", ("This page has reached its subscriber limit", "full"), true),
        ] {
            let form = SubscriptionInput { email, url, errors: ValidationErrors::single(field, "is wrong") };
            let document = document("", SubscriptionStep::Subscribe { form, choice: choice.clone(), programs: None });
            let (mail, webhook) = document.split_once("<details class=\"more way\"").unwrap();
            assert_eq!(webhook.starts_with(" open>"), is_expanded, "{field}");
            let (submitted_form, other) = if is_expanded { (webhook, mail) } else { (mail, webhook) };
            let expected = [format!(" role=\"alert\" id=\"{error_id}"), error_text.to_owned()];
            assert!(expected.iter().all(|it| submitted_form.matches(it).count() == 1), "{field}: {submitted_form}");
            assert!(!other.contains("role=\"alert\""), "{field}: {other}");
            assert_eq!(submitted_form.contains(" autofocus"), field != "page", "{field}: {submitted_form}");
            assert_eq!(submitted_form.contains("aria-describedby"), field != "page", "{field}: {submitted_form}");
        }
    }

    #[test]
    fn submitted_text_is_escaped_in_every_form() {
        let hostile = "\"><script>alert(1)</script>".to_owned();
        let choice = MonitorChoice::of(&[(MonitorId::from_u128(1), hostile.clone())], None);
        let form = SubscriptionInput {
            email: Some(hostile.clone()),
            url: Some(hostile.clone()),
            ..SubscriptionInput::default()
        };
        let faults = ValidationErrors::single("email", "must be \"<b>\"");
        for step in [
            SubscriptionStep::Subscribe { form, choice: choice.clone(), programs: Some(hostile.clone()) },
            SubscriptionStep::ChallengeSent { secret: hostile.clone(), link: hostile.clone() },
            SubscriptionStep::EditSubscription {
                address: hostile.clone(),
                is_new: true,
                link: hostile.clone(),
                choice,
                faults,
            },
            SubscriptionStep::Confirmed { link: hostile.clone() },
            SubscriptionStep::ConfirmAlerts { mailbox: hostile.clone(), link: hostile.clone() },
            SubscriptionStep::AlertsConfirmed { mailbox: hostile.clone() },
            SubscriptionStep::StopAlerts { mailbox: hostile.clone(), link: hostile.clone() },
            SubscriptionStep::AlertsStopped { mailbox: hostile.clone() },
            SubscriptionStep::Unsubscribe { link: hostile },
        ] {
            let document = document("/p/northwind", step);
            assert!(!document.contains("<script>") && !document.contains("\"<b>"), "{document}");
        }
    }
}
