//! Mails to one person that tell of no news: to confirm a subscription or alerts, to sign in, and that a destination was
//! switched off.

use parallax_core::delivery::Mail;
use parallax_core::destination::OffReason;
use parallax_core::time::Timestamp;

use super::mail::{Mood, Sheet};
use super::{text, words};

/// UTF-16 units of a name.
const MAX_NAME: usize = 140;

/// Asks whether the address wants a page's updates. The link shows a page with a button; opening it confirms nothing.
pub fn confirmation(page: &str, page_url: &str, confirm_url: &str) -> Mail {
    let page = text::line(page, MAX_NAME);
    Sheet {
        title: format!("Confirm your subscription to {page}"),
        lead: vec![format!(
            "Somebody, probably you, asked that this address be told of incidents and maintenance of {page} ({}). If it \
             was you, open the link and confirm. If not, ignore this: nothing more will come.",
            text::line(page_url, 300)
        )],
        link: Some(("Confirm the subscription".to_owned(), confirm_url.to_owned())),
        footer: vec!["A request that is not confirmed within two days is forgotten.".to_owned()],
        ..Sheet::default()
    }
    .mail()
}

/// Asks whether the address wants a page's alerts. The link shows a page with a button; opening it confirms nothing.
pub fn alerts_confirmation(page: &str, page_url: &str, confirm_url: &str) -> Mail {
    let page = text::line(page, MAX_NAME);
    Sheet {
        title: format!("Confirm that you want the alerts of {page}"),
        lead: vec![format!(
            "Whoever looks after {page} ({}) asked that this address get a mail whenever one of its monitors goes down, \
             comes back or is slow. If you want that, open the link and confirm. If not, ignore this: nothing more will come.",
            text::line(page_url, 300)
        )],
        link: Some(("Confirm the alerts".to_owned(), confirm_url.to_owned())),
        footer: vec!["The link is good for two days.".to_owned()],
        ..Sheet::default()
    }
    .mail()
}

/// Brings the link by which somebody signs in to a private page. Opening it shows a button, and does nothing else.
pub fn sign_in(page: &str, page_url: &str, link: &str) -> Mail {
    let page = text::line(page, MAX_NAME);
    Sheet {
        title: format!("Sign in to {page}"),
        lead: vec![
            format!(
                "Somebody, probably you, asked to see {page} ({}). If it was you, open the link in the browser that you \
                 asked with. If not, ignore this: nobody gets in without it.",
                text::line(page_url, 300)
            ),
            "It works once, within 15 minutes.".to_owned(),
        ],
        link: Some(("Sign in".to_owned(), link.to_owned())),
        footer: vec!["You get this because the owner of this page allows your address to see it.".to_owned()],
        ..Sheet::default()
    }
    .mail()
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
        OffReason::Unconfirmed => "The reader of its mailbox has not confirmed.",
    };
    Sheet {
        title: format!("Alerts to {name} are switched off ({page})"),
        mood: Mood::Warning,
        lead: vec![
            format!("The destination {name} of {page} gets no more alerts. {reason}"),
            "Once it can be reached again, save it anew in the page's alert settings to switch it on."
                .to_owned(),
        ],
        facts: vec![("Since", words::moment(at, zone))],
        footer: vec![format!("You get this as the owner of {page}.")],
        ..Sheet::default()
    }
    .mail()
}
