//! Mail to an account's owner about what a downgrade of the plan stops (in English).

use parallax_core::delivery::MailMessage;
use parallax_core::destination::ChannelKind;
use parallax_core::plan::Plan;
use parallax_core::time::Timestamp;

use super::mail::{HeadingColor, MailContent};
use super::{text, time_format};

/// Maximum length of a name in UTF-16 units.
const MAX_NAME: usize = 140;
/// Maximum number of destinations and of monitors that are listed by name.
const MAX_LISTED: usize = 20;

/// Features that stop when an account moves to another plan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DowngradeEffects {
    /// Destinations that no longer receive alerts: channel, name, and name of the page.
    pub destinations: Vec<(ChannelKind, String, String)>,
    /// Component monitors that are paused: name, and name of the page.
    pub components: Vec<(String, String)>,
    /// New check interval in milliseconds, if it becomes longer.
    pub interval_ms: Option<u32>,
    /// True if regional settings are in use that the plan ignores.
    pub regions: bool,
    /// Existing monitors and the plan's limit, if the limit is lower.
    pub monitors: Option<(usize, u32)>,
}

impl DowngradeEffects {
    /// Returns true if nothing stops.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Renders the mail.
pub fn downgrade_mail(plan: Plan, effects: &DowngradeEffects, at: Timestamp) -> MailMessage {
    let name = |name: &str| text::single_line(name, MAX_NAME);
    let mut list = Vec::new();
    for (kind, destination, page) in effects.destinations.iter().take(MAX_LISTED) {
        let (destination, page) = (name(destination), name(page));
        list.push(format!("The {} destination {destination} of {page} no longer receives alerts.", kind.name()));
    }
    list.extend(more_line(effects.destinations.len(), "destinations"));
    for (monitor, page) in effects.components.iter().take(MAX_LISTED) {
        list.push(format!("The component monitor {} of {} is paused.", name(monitor), name(page)));
    }
    list.extend(more_line(effects.components.len(), "component monitors"));
    if let Some(interval) = effects.interval_ms {
        list.push(format!("Monitors are checked every {}.", time_format::format_duration(i64::from(interval))));
    }
    if effects.regions {
        list.push("Region settings are kept but not used.".to_owned());
    }
    if let Some((count, allowed)) = effects.monitors {
        list.push(format!(
            "The account has {count} monitors, and the plan allows {allowed}. All of them are still checked, but \
             new ones can't be added."
        ));
    }
    let title = match plan {
        Plan::Free => "Free",
        Plan::Hobby => "Hobby",
        Plan::Pro => "Pro",
    };
    MailContent {
        title: format!("Your account is now on the {title} plan"),
        heading_color: HeadingColor::Warning,
        paragraphs: vec![format!(
            "Your account was moved to the {title} plan. Nothing is deleted: the features below work again on a plan that includes them."
        )],
        facts: vec![("Since", time_format::format_time(at, chrono_tz::UTC))],
        list_title: "What no longer works",
        list,
        footer: vec!["You received this email as the owner of this account.".to_owned()],
        ..MailContent::default()
    }
    .render()
}

fn more_line(count: usize, noun: &str) -> Option<String> {
    count
        .checked_sub(MAX_LISTED)
        .filter(|more| *more > 0)
        .map(|more| format!("The same applies to {more} more {noun}."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_downgrade_mail_names_what_stops_and_truncates_long_lists() {
        let webhook = (ChannelKind::Webhook, "On call".to_owned(), "Shop".to_owned());
        let effects = DowngradeEffects {
            destinations: vec![webhook; MAX_LISTED + 3],
            components: vec![("GitHub".to_owned(), "Shop".to_owned())],
            interval_ms: Some(300_000),
            regions: true,
            monitors: Some((14, 10)),
        };
        assert!(!effects.is_empty() && DowngradeEffects::default().is_empty());
        let mail = downgrade_mail(Plan::Free, &effects, Timestamp::from_millis(1_795_783_560_000));
        assert_eq!(mail.subject, "Your account is now on the Free plan");
        for text in [
            "The webhook destination On call of Shop no longer receives alerts.",
            "The same applies to 3 more destinations.",
            "The component monitor GitHub of Shop is paused.",
            "Monitors are checked every 5 min.",
            "Region settings are kept but not used.",
            "The account has 14 monitors, and the plan allows 10",
        ] {
            assert!(mail.text.contains(text) && mail.html.contains(text), "{text}: {}", mail.text);
        }
        assert_eq!(mail.text.matches("On call").count(), MAX_LISTED);
    }
}
