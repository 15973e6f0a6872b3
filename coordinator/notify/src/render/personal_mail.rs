//! Mails to one person that are not page updates: confirming a subscription or alerts, signing in, a
//! destination that was switched off, a monitor that can't be judged.

use parallax_core::check::CheckKind;
use parallax_core::delivery::MailMessage;
use parallax_core::destination::DisableReason;
use parallax_core::locale::fill;
use parallax_core::monitor::Monitor;
use parallax_core::page::Page;
use parallax_core::text::is_plain_name;
use parallax_core::time::Timestamp;
use parallax_i18n::mail_messages;

use super::mail::{HeadingColor, MailContent};
use super::{text, time_format};

/// Maximum length of a name in UTF-16 units.
const MAX_NAME: usize = 140;
/// Maximum length of a reason in UTF-16 units.
const MAX_REASON: usize = 300;

/// Asks for confirmation of a subscription. The link shows a page with a button; opening it confirms nothing.
pub fn subscription_confirmation(page: &Page, page_url: &str, confirm_url: &str) -> MailMessage {
    let messages = mail_messages::messages(page.language);
    link_mail(
        page,
        page_url,
        messages.confirm,
        messages.confirm_lead,
        (messages.confirm_link, confirm_url),
        messages.confirm_note,
    )
    .render()
}

/// Asks for confirmation of alerts to an address. The link shows a page with a button; opening it confirms
/// nothing.
pub fn alerts_confirmation(page: &Page, page_url: &str, confirm_url: &str) -> MailMessage {
    let messages = mail_messages::messages(page.language);
    link_mail(
        page,
        page_url,
        messages.alerts,
        messages.alerts_lead,
        (messages.alerts_link, confirm_url),
        messages.alerts_note,
    )
    .render()
}

/// Renders the mail with a sign-in link to a private page. Opening the link shows a button and does nothing
/// else.
pub fn sign_in(page: &Page, page_url: &str, link: &str) -> MailMessage {
    let messages = mail_messages::messages(page.language);
    let mut content = link_mail(
        page,
        page_url,
        messages.sign_in,
        messages.sign_in_lead,
        (messages.sign_in_link, link),
        messages.sign_in_note,
    );
    content.paragraphs.push(messages.sign_in_once.to_owned());
    content.render()
}

/// Renders the mail with a link that signs a person in to the dashboard.
pub fn dashboard_sign_in(base_url: &str, link: &str) -> MailMessage {
    let url = text::single_line(base_url, 300);
    MailContent {
        title: "Sign in to Parallax".to_owned(),
        paragraphs: vec![
            format!("Someone asked to sign in to {url} with this email address."),
            "The link works once, for 15 minutes, in the browser that asked for it.".to_owned(),
        ],
        links: vec![("Sign in".to_owned(), link.to_owned())],
        footer: vec!["If it was not you, ignore this mail. Nothing happens until the link is used.".to_owned()],
        ..MailContent::default()
    }
    .render()
}

/// Content in the page's language that asks the recipient to open a link. The recipient has not agreed to
/// anything yet: a page name that could be read as a message is replaced by the page's URL, in the subject as
/// well.
fn link_mail(
    page: &Page,
    page_url: &str,
    title: &str,
    lead: &str,
    (label, link): (&str, &str),
    note: &str,
) -> MailContent {
    let url = text::single_line(page_url, 300);
    let (title_name, lead_name) = if is_plain_name(&page.name) {
        let name = text::single_line(&page.name, MAX_NAME);
        let name_and_url = fill(mail_messages::messages(page.language).name_and_url, &[&name, &url]);
        (name, name_and_url)
    } else {
        (url.clone(), url)
    };
    MailContent {
        language: page.language,
        title: fill(title, &[&title_name]),
        paragraphs: vec![fill(lead, &[&lead_name])],
        links: vec![(label.to_owned(), link.to_owned())],
        footer: vec![note.to_owned()],
        ..MailContent::default()
    }
}

/// Renders the mail to a page's owner that a destination was switched off automatically.
pub fn destination_switched_off(
    destination: &str,
    page: &str,
    reason: DisableReason,
    at: Timestamp,
    zone: chrono_tz::Tz,
) -> MailMessage {
    let (name, page) = (text::single_line(destination, MAX_NAME), text::single_line(page, MAX_NAME));
    let sentence = match reason {
        DisableReason::Gone => "It responded with 410 Gone.",
        DisableReason::Failing => "Every delivery to it has failed for five days.",
        DisableReason::Rejected => "Its mail server permanently rejected the address three times in a row.",
        DisableReason::Unconfirmed => "The recipient stopped the alerts.",
        DisableReason::Plan => "The account's plan does not include its channel.",
    };
    let next = match reason {
        DisableReason::Unconfirmed => {
            "To ask the recipient again, wait a day and save the destination in the page's alert settings."
        }
        _ => "Once it works again, save the destination in the page's alert settings to switch it on.",
    };
    MailContent {
        title: format!("Alerts to {name} are switched off ({page})"),
        heading_color: HeadingColor::Warning,
        paragraphs: vec![
            format!("The destination {name} of {page} no longer receives alerts. {sentence}"),
            next.to_owned(),
        ],
        facts: vec![("Since", time_format::format_time(at, zone))],
        footer: vec![format!("You received this email as the owner of {page}.")],
        ..MailContent::default()
    }
    .render()
}

/// Renders the mail to a page's owner that no check of a monitor could be judged since `since`, with the
/// reason of the newest check.
pub(crate) fn monitor_unjudged(page: &Page, monitor: &Monitor, since: Timestamp, reason: &str) -> MailMessage {
    let kind = monitor.check.kind();
    let (name, page_name) = (text::single_line(&monitor.name, MAX_NAME), text::single_line(&page.name, MAX_NAME));
    let (title, next) = match kind {
        CheckKind::Domain => (
            format!("The expiry date of {name} can't be read ({page_name})"),
            "This monitor can't warn you before the domain expires. Note the date that your registrar shows, or delete \
             the monitor.",
        ),
        CheckKind::Component => (
            format!("The status of {name} can't be read ({page_name})"),
            "Check the address of the status page and the name of the component in the monitor's settings.",
        ),
        CheckKind::Http
        | CheckKind::Tcp
        | CheckKind::Dns
        | CheckKind::Ping
        | CheckKind::Certificate
        | CheckKind::Heartbeat => (
            format!("{name} can't be checked ({page_name})"),
            "Visitors may still reach it. See the monitor's last check for what its server would need to support.",
        ),
    };
    MailContent {
        title,
        heading_color: HeadingColor::Warning,
        paragraphs: vec![
            format!(
                "No agent could judge a check of {name}, a monitor of {page_name}. This is not an outage, so no alert \
                 was sent."
            ),
            next.to_owned(),
        ],
        facts: vec![
            ("Reason", text::single_line(reason, MAX_REASON)),
            ("Target", text::single_line(&monitor.check.target(), MAX_REASON)),
            ("Since", time_format::format_time(since, page.timezone)),
        ],
        footer: vec![format!("You receive this email once, as the owner of {page_name}.")],
        ..MailContent::default()
    }
    .render()
}
