//! Validation of a monitor as sent in a request.

use std::collections::BTreeMap;

use super::MonitorSettings;
use crate::check::CheckKind;
use crate::check::edit::CheckEdit;
use crate::patch::PatchField;
use crate::text;
use crate::validation::{Rule, ValidationErrors};
use crate::vantage::{Region, RegionSet};

/// Maximum length of a name, in characters.
pub const MAX_NAME: usize = 80;
/// Maximum length of a group, in characters.
pub const MAX_GROUP: usize = 60;
/// Allowed slow thresholds in milliseconds: below the check timeout of ten seconds.
pub const THRESHOLD_MS: std::ops::RangeInclusive<i64> = 1..=9999;

/// The fields of a monitor, as sent.
#[derive(Clone, Default)]
#[allow(missing_debug_implementations, reason = "what is checked holds secrets")]
pub struct MonitorEdit {
    /// Type, which can't be changed later.
    pub kind: PatchField<String>,
    /// The name.
    pub name: PatchField<String>,
    /// The group.
    pub group: PatchField<String>,
    /// Response time in milliseconds above which a check is slow.
    pub slow_threshold_ms: PatchField<i64>,
    /// Thresholds by region name.
    pub slow_thresholds: PatchField<BTreeMap<String, i64>>,
    /// Regions for response times, by name.
    pub latency_regions: PatchField<Vec<String>>,
    /// The only region to check from, by name; empty means every region.
    pub pinned_region: PatchField<String>,
    /// True to pause it.
    pub paused: PatchField<bool>,
    /// The check.
    pub check: CheckEdit,
    /// Notifies subscribers of an automatic incident that ends because the monitor is paused; off by default.
    pub notify: PatchField<bool>,
    /// Errors for fields that were sent and can't be edited.
    pub read_only_errors: ValidationErrors,
}

impl MonitorEdit {
    /// Validates what was sent on top of the present settings (none for a new monitor). `token` is used for a
    /// new heartbeat's ping URL.
    ///
    /// # Errors
    /// Every field that breaks a rule.
    pub fn validate(&self, before: Option<&MonitorSettings>, token: &str) -> Result<MonitorSettings, ValidationErrors> {
        let mut faults = self.read_only_errors.clone();
        let kind_before = before.map(|settings| settings.check.kind());
        let kind = self.kind(kind_before, &mut faults).or(kind_before);
        let group_before = before.and_then(|settings| settings.group.clone());
        let group =
            self.group.optional("groupName", group_before, &mut faults, |group| text::optional_line(group, MAX_GROUP));
        let name_before = before.map(|settings| settings.name.clone());
        let Some(kind) = kind else {
            // Without a type only the name can be validated.
            self.name(name_before, Some(String::new()), &mut faults);
            return Err(faults);
        };
        let check = self.check.validate(kind, before.map(|settings| &settings.check), token, &mut faults);
        let stand_in = match &check {
            Some(check) => check.host.as_deref().map(truncated_name),
            // The invalid target is already reported; a missing name is not reported in addition.
            None => (!matches!(kind, CheckKind::Heartbeat | CheckKind::Component)).then(String::new),
        };
        let name = self.name(name_before, stand_in, &mut faults);
        let mut speed = before.map(LatencySettings::of).unwrap_or_default();
        if kind.has_latency() {
            self.latency_settings(&mut speed, &mut faults);
        }
        let mut pinned = before.and_then(|settings| settings.pinned_region);
        if can_be_pinned(kind) {
            pinned = self.pinned_region.optional("pinnedRegion", pinned, &mut faults, |name| read_pinned(name));
        }
        let paused_before = before.map(|settings| settings.paused);
        let paused = self.paused.defaulted("paused", paused_before, false, &mut faults, |paused| Ok(*paused));
        self.notify.required("notify", Some(false), &mut faults, |notify| Ok(*notify));
        match (name, check, paused) {
            (Some(name), Some(check), Some(paused)) if faults.is_empty() => Ok(MonitorSettings {
                name,
                group,
                check: check.check,
                slow_threshold_ms: speed.threshold_ms,
                slow_thresholds: speed.thresholds,
                latency_regions: speed.regions,
                pinned_region: pinned,
                paused,
            }),
            (_, _, _) => Err(faults),
        }
    }

    fn kind(&self, before: Option<CheckKind>, faults: &mut ValidationErrors) -> Option<CheckKind> {
        let fixed = || "can't be changed after creation".to_owned();
        let read = |name: &String| text::one_of(name, &CheckKind::ALL, CheckKind::name);
        match before {
            None => self.kind.defaulted("type", None, CheckKind::Http, faults, read),
            Some(before) => self.kind.required("type", Some(before), faults, |name| match read(name)? {
                same if same == before => Ok(same),
                _ => Err(fixed()),
            }),
        }
    }

    /// The name, or its default for a new monitor that is sent without one.
    fn name(&self, before: Option<String>, stand_in: Option<String>, faults: &mut ValidationErrors) -> Option<String> {
        match (&self.name, before, stand_in) {
            (PatchField::Absent | PatchField::Null, None, Some(stand_in)) => Some(stand_in),
            (given, before, _) => given.required("name", before, faults, |name| text::line(name, 1..=MAX_NAME)),
        }
    }

    fn latency_settings(&self, speed: &mut LatencySettings, faults: &mut ValidationErrors) {
        speed.threshold_ms = self
            .slow_threshold_ms
            .optional("slowThresholdMs", speed.threshold_ms, faults, |ms| read_threshold(*ms).map(Some));
        let before = speed.thresholds.take();
        speed.thresholds = self.slow_thresholds.optional("slowThresholds", before, faults, read_thresholds);
        speed.regions = self
            .latency_regions
            .optional("latencyLocations", speed.regions, faults, |names| text::regions(names).map(Some));
    }
}

/// The settings that decide whether a monitor is slow.
#[derive(Default)]
struct LatencySettings {
    threshold_ms: Option<u32>,
    thresholds: Option<BTreeMap<Region, u32>>,
    regions: Option<RegionSet>,
}

impl LatencySettings {
    fn of(settings: &MonitorSettings) -> Self {
        Self {
            threshold_ms: settings.slow_threshold_ms,
            thresholds: settings.slow_thresholds.clone(),
            regions: settings.latency_regions,
        }
    }
}

/// Returns true if monitors of the type may be checked from a single region.
const fn can_be_pinned(kind: CheckKind) -> bool {
    match kind {
        CheckKind::Http
        | CheckKind::Tcp
        | CheckKind::Dns
        | CheckKind::Ping
        | CheckKind::Certificate
        | CheckKind::Domain => true,
        CheckKind::Heartbeat | CheckKind::Component => false,
    }
}

fn read_threshold(ms: i64) -> Result<u32, Rule> {
    text::integer(ms, THRESHOLD_MS)
}

fn read_thresholds(given: &BTreeMap<String, i64>) -> Result<Option<BTreeMap<Region, u32>>, Rule> {
    let mut thresholds = BTreeMap::new();
    for (name, ms) in given {
        let region = text::region(name).map_err(|rule| format!("must have regions as names: each {rule}"))?;
        let ms = read_threshold(*ms).map_err(|rule| format!("must have milliseconds as values: each {rule}"))?;
        thresholds.insert(region, ms);
    }
    Ok((!thresholds.is_empty()).then_some(thresholds))
}

fn read_pinned(name: &str) -> Result<Option<Region>, Rule> {
    if name.trim().is_empty() { Ok(None) } else { text::region(name).map(Some) }
}

/// Shortens a host to the length of a name.
fn truncated_name(host: &str) -> String {
    host.chars().take(MAX_NAME).collect()
}

#[cfg(test)]
mod tests;
