//! Alert settings of a page, and its announced outages.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::compat;
use crate::id::{IncidentId, MonitorId, UpdateId};
use crate::observation::Failure;
use crate::outage::wider_scope;
use crate::patch::PatchField;
use crate::time::Timestamp;
use crate::validation::ValidationErrors;
use crate::vantage::RegionSet;

/// Minutes between two notifications of an ongoing outage.
pub const REPEAT_MINUTES: std::ops::RangeInclusive<u16> = 5..=1440;

/// A page's alert settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AlertSettings {
    /// Minutes between two notifications of an ongoing outage; none means only the first.
    pub repeat_minutes: Option<u16>,
    /// True if monitors that go down open incidents.
    pub automatic_incidents: bool,
}

impl Default for AlertSettings {
    fn default() -> Self {
        Self { repeat_minutes: None, automatic_incidents: true }
    }
}

/// A page's alert settings, as sent.
#[derive(Debug, Clone, Default)]
pub struct AlertSettingsEdit {
    /// Minutes between two notifications of an ongoing outage.
    pub repeat_minutes: PatchField<i64>,
    /// True if monitors that go down open incidents.
    pub automatic_incidents: PatchField<bool>,
    /// Errors for fields that were sent and can't be edited.
    pub read_only_errors: ValidationErrors,
}

impl AlertSettingsEdit {
    /// Validates an edit of the settings.
    ///
    /// # Errors
    /// Every field that breaks a rule.
    pub fn validate(&self, before: AlertSettings) -> Result<AlertSettings, ValidationErrors> {
        let mut faults = self.read_only_errors.clone();
        let repeat_minutes =
            self.repeat_minutes.optional("repeatMinutes", before.repeat_minutes, &mut faults, |minutes| {
                let rule = || format!("must be {} to {}, or null", REPEAT_MINUTES.start(), REPEAT_MINUTES.end());
                u16::try_from(*minutes)
                    .ok()
                    .filter(|minutes| REPEAT_MINUTES.contains(minutes))
                    .map(Some)
                    .ok_or_else(rule)
            });
        let automatic_incidents = self.automatic_incidents.defaulted(
            "automaticIncidents",
            Some(before.automatic_incidents),
            true,
            &mut faults,
            |on| Ok(*on),
        );
        match automatic_incidents {
            Some(automatic_incidents) if faults.is_empty() => Ok(AlertSettings { repeat_minutes, automatic_incidents }),
            _ => Err(faults),
        }
    }
}

/// The announced outages of a page that are not over, by monitor: the basis of automatic incidents.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnnouncedOutages {
    /// The monitors that are down.
    pub down: BTreeMap<MonitorId, AnnouncedOutage>,
    /// Widest scope of outages whose scope has changed; none as scope means everywhere. Older records end
    /// here.
    #[serde(deserialize_with = "compat::or_default")]
    pub widest_scope: BTreeMap<MonitorId, Option<RegionSet>>,
    /// Updates that report flapping monitors: such an incident stays open until the monitor is steady. Some
    /// older records end before this.
    #[serde(deserialize_with = "compat::or_default")]
    pub flapping: BTreeMap<MonitorId, FlappingUpdate>,
}

/// The update that reports a flapping monitor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlappingUpdate {
    /// The automatic incident.
    pub incident: IncidentId,
    /// The update, which is refreshed in place; none if the incident has the maximum number of updates.
    pub update: Option<UpdateId>,
}

impl AnnouncedOutages {
    /// Returns true if no announced outage or flapping is in progress.
    pub fn is_empty(&self) -> bool {
        self.down.is_empty() && self.flapping.is_empty()
    }

    /// Adds an announced outage.
    pub fn add(&mut self, monitor: MonitorId, outage: AnnouncedOutage) {
        self.widest_scope.remove(&monitor);
        self.down.insert(monitor, outage);
    }

    /// Changes the regions that a monitor is down from. Returns the outage as it was before, if they changed.
    pub fn change_scope(&mut self, monitor: MonitorId, down_from: Option<RegionSet>) -> Option<AnnouncedOutage> {
        let outage = self.down.get_mut(&monitor).filter(|outage| outage.down_from != down_from)?;
        let before = outage.clone();
        outage.down_from = down_from;
        let widest = self.widest_scope.entry(monitor).or_insert(before.down_from);
        *widest = wider_scope(*widest, down_from);
        Some(before)
    }

    /// Ends a monitor's outage. Returns it with its last and its widest scope.
    pub fn remove(&mut self, monitor: MonitorId) -> Option<(AnnouncedOutage, Option<RegionSet>)> {
        let widest = self.widest_scope.remove(&monitor);
        let outage = self.down.remove(&monitor)?;
        let widest = widest.unwrap_or(outage.down_from);
        Some((outage, widest))
    }
}

/// An announced outage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnnouncedOutage {
    /// Start.
    pub since: Timestamp,
    /// Failure reason.
    pub reason: Option<Failure>,
    /// Regions that it is down from while others see it up.
    pub down_from: Option<RegionSet>,
    /// The automatic incident that it belongs to.
    pub incident: Option<IncidentId>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_keep_their_bounds_and_what_was_left_out() {
        let before = AlertSettings { repeat_minutes: Some(10), automatic_incidents: false };
        assert_eq!(AlertSettingsEdit::default().validate(before), Ok(before));
        let repeat = |given| {
            let edit = AlertSettingsEdit { repeat_minutes: given, ..AlertSettingsEdit::default() };
            edit.validate(before).map(|after| after.repeat_minutes)
        };
        assert_eq!(repeat(PatchField::Null), Ok(None));
        for (minutes, fits) in [(4, false), (5, true), (1440, true), (1441, false), (-5, false), (70_000, false)] {
            let edited = repeat(PatchField::Value(minutes));
            assert_eq!(edited.is_ok(), fits, "{minutes}: {edited:?}");
        }
        let on = AlertSettingsEdit { automatic_incidents: PatchField::Null, ..AlertSettingsEdit::default() };
        assert!(on.validate(before).is_ok_and(|after| after.automatic_incidents));
    }
}
