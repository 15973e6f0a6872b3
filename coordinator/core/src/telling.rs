//! How a page tells of its monitors, as its owner set it, and which outages it has told of.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::given::Given;
use crate::id::{IncidentId, MonitorId, UpdateId};
use crate::late;
use crate::observation::Failure;
use crate::outage::wider;
use crate::place::RegionSet;
use crate::refusal::Refusals;
use crate::time::{MINUTE, Timestamp};

/// Minutes between two words on an outage that lasts.
pub const REPEAT: std::ops::RangeInclusive<u16> = 5..=1440;

/// A page's alert settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Telling {
    /// Minutes between two words on an outage that lasts; none: one word.
    pub repeat_minutes: Option<u16>,
    /// Whether monitors that go down open incidents.
    pub automatic_incidents: bool,
}

impl Default for Telling {
    fn default() -> Self {
        Self { repeat_minutes: None, automatic_incidents: true }
    }
}

impl Telling {
    /// Milliseconds between two words on an outage that lasts.
    pub fn repeat_ms(&self) -> Option<i64> {
        self.repeat_minutes.map(|minutes| i64::from(minutes) * MINUTE)
    }
}

/// A page's alert settings, as they were sent.
#[derive(Debug, Clone, Default)]
pub struct TellingEdit {
    /// Minutes between two words on an outage that lasts.
    pub repeat_minutes: Given<i64>,
    /// Whether monitors that go down open incidents.
    pub automatic_incidents: Given<bool>,
    /// Fields that were sent and that no edit changes, each with the rule that says so.
    pub refused: Refusals,
}

impl TellingEdit {
    /// The settings that come of what stands and what was sent.
    ///
    /// # Errors
    /// Every field that breaks a rule.
    pub fn settle(&self, before: Telling) -> Result<Telling, Refusals> {
        let mut faults = self.refused.clone();
        let repeat_minutes =
            self.repeat_minutes.optional("repeatMinutes", before.repeat_minutes, &mut faults, |minutes| {
                let rule = || format!("must be {} to {}, or null", REPEAT.start(), REPEAT.end());
                u16::try_from(*minutes)
                    .ok()
                    .filter(|minutes| REPEAT.contains(minutes))
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
            Some(automatic_incidents) if faults.is_empty() => {
                Ok(Telling { repeat_minutes, automatic_incidents })
            }
            _ => Err(faults),
        }
    }
}

/// The outages of a page that were told and are not over, by monitor: what automatic incidents are made of.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outages {
    /// Each monitor that is down.
    pub down: BTreeMap<MonitorId, ToldOutage>,
    /// Of those whose scope changed since: the widest that it was, none being everywhere. A record of before ends here.
    #[serde(deserialize_with = "late::or_default")]
    pub widest: BTreeMap<MonitorId, Option<RegionSet>>,
    /// Places where it is said of monitors that they flap: the incident stays open until they are steady. A record may also
    /// end before this.
    #[serde(deserialize_with = "late::or_default")]
    pub flapping: BTreeMap<MonitorId, FlappingNotice>,
}

/// Place where it is said that a monitor flaps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlappingNotice {
    /// The automatic incident.
    pub incident: IncidentId,
    /// The update, which is renewed in place; none where the incident has all that it may have.
    pub update: Option<UpdateId>,
}

impl Outages {
    /// True while nothing is down and nothing flaps, as far as it was told.
    pub fn are_over(&self) -> bool {
        self.down.is_empty() && self.flapping.is_empty()
    }

    /// A monitor's outage was told.
    pub fn begin(&mut self, monitor: MonitorId, outage: ToldOutage) {
        self.widest.remove(&monitor);
        self.down.insert(monitor, outage);
    }

    /// A monitor is down from other regions than before. Gives the outage as it was until now, where that is so.
    pub fn rescope(&mut self, monitor: MonitorId, down_from: Option<RegionSet>) -> Option<ToldOutage> {
        let outage = self.down.get_mut(&monitor).filter(|outage| outage.down_from != down_from)?;
        let before = outage.clone();
        outage.down_from = down_from;
        let widest = self.widest.entry(monitor).or_insert(before.down_from);
        *widest = wider(*widest, down_from);
        Some(before)
    }

    /// A monitor's outage is over. Gives it as it was at last, and its widest scope.
    pub fn end(&mut self, monitor: MonitorId) -> Option<(ToldOutage, Option<RegionSet>)> {
        let widest = self.widest.remove(&monitor);
        let outage = self.down.remove(&monitor)?;
        let widest = widest.unwrap_or(outage.down_from);
        Some((outage, widest))
    }
}

/// An outage that was told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToldOutage {
    /// When it began.
    pub since: Timestamp,
    /// Why.
    pub reason: Option<Failure>,
    /// Regions that it is down from, while others see it up.
    pub down_from: Option<RegionSet>,
    /// The automatic incident that it belongs to.
    pub incident: Option<IncidentId>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_keep_their_bounds_and_what_was_left_out() {
        let before = Telling { repeat_minutes: Some(10), automatic_incidents: false };
        assert_eq!(TellingEdit::default().settle(before), Ok(before));
        let repeat = |given| {
            let edit = TellingEdit { repeat_minutes: given, ..TellingEdit::default() };
            edit.settle(before).map(|after| after.repeat_minutes)
        };
        assert_eq!(repeat(Given::Null), Ok(None));
        for (minutes, fits) in
            [(4, false), (5, true), (1440, true), (1441, false), (-5, false), (70_000, false)]
        {
            let told = repeat(Given::Value(minutes));
            assert_eq!(told.is_ok(), fits, "{minutes}: {told:?}");
        }
        let on = TellingEdit { automatic_incidents: Given::Null, ..TellingEdit::default() };
        assert!(on.settle(before).is_ok_and(|after| after.automatic_incidents));
    }
}
