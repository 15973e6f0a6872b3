//! Undo: the inverse of a change as data, and the reasons for which it can't be applied any more.
//!
//! An inverse holds what the change replaced or deleted, never what it sent: it is applied as one write, and only
//! while every record is still as the change left it.

mod earlier_order;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use self::earlier_order::EarlierOrder;
use crate::deploy::Deploy;
use crate::destination::Destination;
use crate::id::{MonitorId, PageId};
use crate::key::ApiKey;
use crate::monitor::{Monitor, MonitorSettings};
use crate::role::Permission;
use crate::subscriber::Subscriber;
use crate::time::MINUTE;
use crate::vantage::{Region, RegionSet};

/// Milliseconds within which a change can be undone.
pub const UNDO_WINDOW: i64 = 10 * MINUTE;
/// Bytes of one stored inverse, at most: a change with a greater one can't be undone.
pub const MAX_INVERSE: usize = 256 * 1024;

/// Inverse of a change. New variants are added only at the end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum InverseChange {
    /// Gives monitors of a page their earlier settings.
    Monitors(PageId, Vec<EarlierMonitor>),
    /// Brings back a deleted destination, with its secrets.
    Destination(Box<Destination>),
    /// Brings back a removed subscriber.
    Subscriber(Box<Subscriber>),
    /// Brings back a deleted deploy marker.
    Deploy(Box<Deploy>),
    /// Brings back a revoked key.
    Key(Box<ApiKey>),
    /// Gives the monitors of a page their earlier order.
    MonitorOrder(PageId, EarlierOrder),
}

impl InverseChange {
    /// Permission that the change needed, and that its inverse needs too.
    pub const fn permission(&self) -> Permission {
        match self {
            Self::Monitors(..) | Self::MonitorOrder(..) | Self::Subscriber(_) | Self::Deploy(_) => Permission::Edit,
            Self::Destination(_) => Permission::ManageAlerts,
            Self::Key(_) => Permission::ManageAccount,
        }
    }

    /// The page that it is about; none for a key.
    pub const fn page(&self) -> Option<PageId> {
        match self {
            Self::Monitors(page, _) | Self::MonitorOrder(page, _) => Some(*page),
            Self::Destination(destination) => Some(destination.page),
            Self::Subscriber(subscriber) => Some(subscriber.page),
            Self::Deploy(deploy) => Some(deploy.page),
            Self::Key(_) => None,
        }
    }

    /// Returns true if it changes nothing.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Monitors(_, monitors) => monitors.is_empty(),
            Self::MonitorOrder(_, order) => order.is_empty(),
            Self::Destination(_) | Self::Subscriber(_) | Self::Deploy(_) | Self::Key(_) => false,
        }
    }
}

/// The settings of a monitor that a change replaced, with their earlier values: those that a form for many sets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EarlierMonitor {
    /// Its id.
    pub id: MonitorId,
    /// Its name, for messages once it is deleted.
    pub name: String,
    group: Option<Option<String>>,
    slow_threshold_ms: Option<Option<u32>>,
    latency_regions: Option<Option<RegionSet>>,
    pinned_region: Option<Option<Region>>,
    paused: Option<bool>,
}

impl EarlierMonitor {
    /// Returns what differs between a monitor before and after a change; `None` if that is more than what this type
    /// has, so that the change can't be undone.
    pub fn of(before: &Monitor, after: &Monitor) -> Option<Self> {
        let earlier = Self {
            id: before.id,
            name: after.name.clone(),
            group: replaced(&before.group, &after.group),
            slow_threshold_ms: replaced(&before.slow_threshold_ms, &after.slow_threshold_ms),
            latency_regions: replaced(&before.latency_regions, &after.latency_regions),
            pinned_region: replaced(&before.pinned_region, &after.pinned_region),
            paused: replaced(&before.paused, &after.paused),
        };
        (earlier.applied_to(after).settings() == before.settings()).then_some(earlier)
    }

    /// Returns the monitor with the earlier values of these settings.
    #[must_use]
    pub fn applied_to(&self, monitor: &Monitor) -> Monitor {
        let now = monitor.settings();
        monitor.with_settings(MonitorSettings {
            group: self.group.clone().unwrap_or(now.group),
            slow_threshold_ms: self.slow_threshold_ms.unwrap_or(now.slow_threshold_ms),
            latency_regions: self.latency_regions.unwrap_or(now.latency_regions),
            pinned_region: self.pinned_region.unwrap_or(now.pinned_region),
            paused: self.paused.unwrap_or(now.paused),
            ..now
        })
    }
}

fn replaced<T: Clone + PartialEq>(before: &T, after: &T) -> Option<T> {
    (before != after).then(|| before.clone())
}

/// Reason for which an inverse can't be applied: what happened to one of its records since.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndoObstacle {
    /// Name of the record.
    pub name: String,
    /// Event: "was changed".
    pub event: &'static str,
    /// Name of the person or key that did it, or "you"; none if it is not known.
    pub by: Option<String>,
}

impl UndoObstacle {
    /// An event of which nobody is known to be the cause.
    pub fn new(name: impl Into<String>, event: &'static str) -> Self {
        Self { name: name.into(), event, by: None }
    }
}

impl fmt::Display for UndoObstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} since", self.name, self.event)?;
        match &self.by {
            Some(by) => write!(f, " by {by}."),
            None => f.write_str("."),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::monitor::NewMonitor;
    use crate::monitor::edit::MonitorEdit;
    use crate::patch::PatchField;
    use crate::time::Timestamp;

    fn monitor() -> Monitor {
        let mut edit = MonitorEdit { name: PatchField::Value("Payments API".to_owned()), ..MonitorEdit::default() };
        edit.check.url = PatchField::Value("https://example.com".to_owned());
        let (id, page) = (MonitorId::from_u128(1), PageId::from_u128(2));
        let new = NewMonitor { id, page, slot: 3, position: 4, now: Timestamp::from_millis(5) };
        Monitor::new(new, edit.validate(None, "").unwrap())
    }

    #[test]
    fn only_what_a_change_replaced_is_given_back() {
        let before = monitor();
        let changed = Monitor {
            group: Some("Shop".to_owned()),
            slow_threshold_ms: Some(400),
            latency_regions: Some(RegionSet::only(Region::Asia)),
            pinned_region: Some(Region::Asia),
            paused: true,
            ..before.clone()
        };
        let earlier = EarlierMonitor::of(&before, &changed).unwrap();
        // Another region is another check, so its results must not be taken for those before.
        assert_eq!(earlier.applied_to(&changed), Monitor { revision: 1, ..before.clone() });
        let moved = Monitor { position: 9, ..changed };
        assert_eq!(earlier.applied_to(&moved).position, 9, "an order is undone by itself");
        let same = EarlierMonitor::of(&before, &before).unwrap();
        assert_eq!(same.applied_to(&moved), moved);
    }

    #[test]
    fn a_change_of_other_settings_has_no_inverse() {
        let before = monitor();
        let renamed = Monitor { name: "Payments".to_owned(), paused: true, ..before.clone() };
        assert_eq!(EarlierMonitor::of(&before, &renamed), None);
        let thresholds = Some([(Region::Asia, 400)].into());
        assert_eq!(EarlierMonitor::of(&before, &Monitor { slow_thresholds: thresholds, ..before.clone() }), None);
    }

    #[test]
    fn a_reason_names_the_record_and_the_actor() {
        let obstacle = UndoObstacle::new("Payments API", "was changed");
        assert_eq!(obstacle.to_string(), "Payments API was changed since.");
        let by = UndoObstacle { by: Some("On-call".to_owned()), ..obstacle };
        assert_eq!(by.to_string(), "Payments API was changed since by On-call.");
    }

    #[test]
    fn an_inverse_needs_the_permission_of_its_change() {
        let inverse = InverseChange::Monitors(PageId::from_u128(2), Vec::new());
        assert!(inverse.is_empty() && inverse.permission() == Permission::Edit);
        assert_eq!(inverse.page(), Some(PageId::from_u128(2)));
        let order = EarlierOrder::new(vec![MonitorId::from_u128(1)], vec![MonitorId::from_u128(1)]);
        let inverse = InverseChange::MonitorOrder(PageId::from_u128(2), order);
        assert!(inverse.is_empty() && inverse.permission() == Permission::Edit);
        assert_eq!(inverse.page(), Some(PageId::from_u128(2)));
    }
}
