//! The page's subscribers: people who confirmed during the simulated past, in a domain that never exists (RFC 2606).

use parallax_core::destination::DeliveryHealth;
use parallax_core::id::{MonitorId, PageId, SubscriberId};
use parallax_core::subscriber::request::SubscriberAddress;
use parallax_core::subscriber::{Contact, Subscriber};
use parallax_core::time::{DAY, MINUTE};
use parallax_service::subscribers::contact_fingerprint;

use super::script::{Calendar, HISTORY_DAYS};
use super::seeded;

/// Monitors that they chose, by key: none of them fails or is in maintenance while the demo runs, so that the demo never
/// mails them.
pub(super) const CHOSEN: [&str; 3] = ["website", "checkout", "search"];

const FIRST_NAMES: [&str; 20] = [
    "ada", "ben", "carla", "dev", "elif", "farid", "grace", "hana", "ivan", "june", "kofi", "lena", "mateo", "nora",
    "omar", "pia", "quinn", "rosa", "sami", "tove",
];
const LAST_NAMES: [&str; 11] =
    ["abara", "brandt", "castro", "dubois", "eriksen", "fischer", "garcia", "haddad", "ito", "jansen", "kim"];

/// Returns the 220 subscribers of the page. `secret` makes the tokens of their links.
pub(super) fn subscribers(
    calendar: Calendar,
    page: PageId,
    monitors: &[MonitorId],
    mut secret: impl FnMut() -> [u8; 16],
) -> Vec<Subscriber> {
    let names = LAST_NAMES.iter().flat_map(|last| FIRST_NAMES.iter().map(move |first| format!("{first}.{last}")));
    let people = (0_i64..).zip(names).map(|(number, name)| {
        let email = format!("{name}@customers.invalid");
        let random = seeded(&email, 0);
        // Spread over the history, in no order.
        let minutes = (number * 7919 + i64::from(random[0])) % ((HISTORY_DAYS - 2) * DAY / MINUTE);
        let created_at = calendar.from() + minutes * MINUTE;
        Subscriber {
            id: SubscriberId::new(created_at, random),
            page,
            fingerprint: contact_fingerprint(&SubscriberAddress::Email(email.clone())),
            contact: Contact::Email(email),
            monitors: Some(monitors.to_vec()),
            confirmed_at: Some(created_at + (2 + i64::from(random[1] % 30)) * MINUTE),
            token: secret(),
            confirmation_sent_at: created_at,
            health: DeliveryHealth::default(),
            created_at,
            by_owner: false,
            queued_at: None,
        }
    });
    people.collect()
}
