//! Mails to one person that carry no news of a page: to confirm a subscription or alerts, to sign in, that a
//! destination was switched off, and that a monitor can't be judged.

use parallax_core::check::CheckKind;
use parallax_core::delivery::Mail;
use parallax_core::destination::OffReason;
use parallax_core::monitor::Monitor;
use parallax_core::page::Page;
use parallax_core::text::is_plain_name;
use parallax_core::time::Timestamp;
use parallax_core::tongue::fill;

use super::mail::{Mood, Sheet};
use super::{text, tongue, words};

/// UTF-16 units of a name.
const MAX_NAME: usize = 140;
/// UTF-16 units of a reason.
const MAX_REASON: usize = 300;

/// Asks whether the address wants a page's updates. The link shows a page with a button; opening it confirms nothing.
pub fn confirmation(page: &Page, page_url: &str, confirm_url: &str) -> Mail {
    let words = tongue::words(page.language);
    asks(
        page,
        page_url,
        words.confirm,
        words.confirm_lead,
        (words.confirm_link, confirm_url),
        words.confirm_note,
    )
    .mail()
}

/// Asks whether the address wants a page's alerts. The link shows a page with a button; opening it confirms nothing.
pub fn alerts_confirmation(page: &Page, page_url: &str, confirm_url: &str) -> Mail {
    let words = tongue::words(page.language);
    asks(page, page_url, words.alerts, words.alerts_lead, (words.alerts_link, confirm_url), words.alerts_note)
        .mail()
}

/// Brings the link by which somebody signs in to a private page. Opening it shows a button, and does nothing else.
pub fn sign_in(page: &Page, page_url: &str, link: &str) -> Mail {
    let words = tongue::words(page.language);
    let mut sheet = asks(
        page,
        page_url,
        words.sign_in,
        words.sign_in_lead,
        (words.sign_in_link, link),
        words.sign_in_note,
    );
    sheet.lead.push(words.sign_in_once.to_owned());
    sheet.mail()
}

/// A sheet in the page's language that has its reader open a link. Its reader has agreed to nothing yet: a name that reads
/// as more than a name stays out of it, subject and all, and the page's address stands in its place.
fn asks(
    page: &Page,
    page_url: &str,
    title: &str,
    lead: &str,
    (label, link): (&str, &str),
    note: &str,
) -> Sheet {
    let url = text::line(page_url, 300);
    let (title_name, lead_name) = if is_plain_name(&page.name) {
        let name = text::line(&page.name, MAX_NAME);
        let named = fill(tongue::words(page.language).named, &[&name, &url]);
        (name, named)
    } else {
        (url.clone(), url)
    };
    Sheet {
        language: page.language,
        title: fill(title, &[&title_name]),
        lead: vec![fill(lead, &[&lead_name])],
        link: Some((label.to_owned(), link.to_owned())),
        footer: vec![note.to_owned()],
        ..Sheet::default()
    }
}

/// Tells a page's owner that a destination, named so, was switched off by us.
pub fn switched_off(
    destination: &str,
    page: &str,
    why: OffReason,
    at: Timestamp,
    zone: chrono_tz::Tz,
) -> Mail {
    let (name, page) = (text::line(destination, MAX_NAME), text::line(page, MAX_NAME));
    let reason = match why {
        OffReason::Gone => "It answered 410: there is nobody at this address any more.",
        OffReason::Failing => "For five days every delivery to it has failed.",
        OffReason::Refused => "Its mail server refused the address for good, three times in a row.",
        OffReason::Unconfirmed => "The reader of its mailbox has stopped them.",
        OffReason::Plan => "The account's plan does not have its channel.",
    };
    let next = match why {
        OffReason::Unconfirmed => {
            "To have its reader asked again, save it in the page's alert settings after a day."
        }
        _ => "Once it can be reached again, save it in the page's alert settings to switch it on.",
    };
    Sheet {
        title: format!("Alerts to {name} are switched off ({page})"),
        mood: Mood::Warning,
        lead: vec![
            format!("The destination {name} of {page} gets no more alerts. {reason}"),
            next.to_owned(),
        ],
        facts: vec![("Since", words::moment(at, zone))],
        footer: vec![format!("You get this as the owner of {page}.")],
        ..Sheet::default()
    }
    .mail()
}

/// Tells a page's owner that no check of a monitor could be judged since then, with the newest check's reason.
pub fn unjudged(page: &Page, monitor: &Monitor, since: Timestamp, reason: &str) -> Mail {
    let kind = monitor.check.kind();
    let (name, of) = (text::line(&monitor.name, MAX_NAME), text::line(&page.name, MAX_NAME));
    let (title, next) = match kind {
        CheckKind::Domain => (
            format!("The expiry date of {name} can't be read ({of})"),
            "This monitor can't warn you before the domain ends. Note the date that your registrar shows, or delete \
             the monitor.",
        ),
        CheckKind::Component => (
            format!("The status of {name} can't be read ({of})"),
            "Check the address of the status page and the name of the component in the monitor's settings.",
        ),
        CheckKind::Http
        | CheckKind::Tcp
        | CheckKind::Dns
        | CheckKind::Ping
        | CheckKind::Certificate
        | CheckKind::Heartbeat => (
            format!("{name} can't be checked ({of})"),
            "Visitors may reach it all the same. See the monitor's last check for what its server would have to offer.",
        ),
    };
    Sheet {
        title,
        mood: Mood::Warning,
        lead: vec![
            format!("No agent could judge a check of {name}, a monitor of {of}. That is not an outage, so no alert is sent."),
            next.to_owned(),
        ],
        facts: vec![
            ("Reason", text::line(reason, MAX_REASON)),
            ("Target", text::line(&monitor.check.target(), MAX_REASON)),
            ("Since", words::moment(since, page.timezone)),
        ],
        footer: vec![format!("You get this once, as the owner of {of}.")],
        ..Sheet::default()
    }
    .mail()
}
