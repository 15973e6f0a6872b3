//! Validation of one change to many monitors, as sent in a request.

use std::collections::BTreeSet;

use super::edit::MonitorEdit;
use crate::check::edit::CheckEdit;
use crate::id::MonitorId;
use crate::patch::PatchField;
use crate::validation::{Rule, ValidationErrors};

/// Monitors in one request, at most: as many as the largest plan has by default.
pub const MAX_BULK_MONITORS: usize = 500;
/// Maximum length of an id as sent, in bytes, since answers repeat it.
const MAX_ID: usize = 64;
/// Prefix of the fields of the change in errors.
const SET: &str = "set.";
/// URL of a monitor that has every field of a change, on which the change is validated once for all.
const SAMPLE_URL: &str = "https://example.com";

/// One change to many monitors, as sent.
#[derive(Default)]
#[allow(missing_debug_implementations, reason = "a monitor's edit may hold secrets")]
pub struct MonitorBulkEdit {
    /// Ids of the monitors, as sent.
    pub monitor_ids: PatchField<Vec<String>>,
    /// The fields to change on each.
    pub set: PatchField<MonitorEdit>,
    /// True to delete them.
    pub delete: PatchField<bool>,
    /// Notifies subscribers of automatic incidents that end because of it; off by default.
    pub notify: PatchField<bool>,
}

/// One valid change to many monitors.
#[allow(missing_debug_implementations, reason = "a monitor's edit may hold secrets")]
pub struct MonitorBulk {
    /// The ids as sent, in order and each once.
    pub ids: Vec<SentMonitorId>,
    /// The change.
    pub action: BulkAction,
    /// True if subscribers are notified of incidents that end because of it.
    pub notify: bool,
}

/// Change to each monitor of a request.
#[allow(missing_debug_implementations, reason = "a monitor's edit may hold secrets")]
pub enum BulkAction {
    /// These fields are changed, as far as they apply to the monitor's type.
    Set(Box<MonitorEdit>),
    /// It is deleted.
    Delete,
}

/// An id as sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentMonitorId {
    /// The text.
    pub text: String,
    /// The id; `None` if the text is not one.
    pub id: Option<MonitorId>,
}

impl MonitorBulkEdit {
    /// Validates the change. Fields of `set` are validated on an http monitor, to which all of them apply.
    ///
    /// # Errors
    /// Every field that breaks a rule; those of the change with the prefix `set.`.
    pub fn validate(&self) -> Result<MonitorBulk, ValidationErrors> {
        let mut faults = ValidationErrors::new();
        let ids = self.monitor_ids.required("monitorIds", None, &mut faults, |ids| read_ids(ids));
        let delete = self.delete.required("delete", Some(false), &mut faults, |delete| Ok(*delete));
        let notify = self.notify.required("notify", Some(false), &mut faults, |notify| Ok(*notify));
        let action = match (&self.set, delete) {
            (PatchField::Absent, Some(true)) => Some(BulkAction::Delete),
            (PatchField::Absent, Some(false)) => {
                faults.add("set", "is required unless delete is true");
                None
            }
            (PatchField::Value(_), Some(true)) => {
                faults.add("set", "must not be sent together with delete");
                None
            }
            (set, _) => set.required("set", None, &mut faults, |edit| Ok(edit.clone())).and_then(|edit| {
                let invalid = invalid_fields(&edit);
                invalid.iter().for_each(|fault| faults.add(format!("{SET}{}", fault.field), fault.rule.clone()));
                invalid.is_empty().then(|| BulkAction::Set(Box::new(edit)))
            }),
        };
        match (ids, action, notify) {
            (Some(ids), Some(action), Some(notify)) if faults.is_empty() => Ok(MonitorBulk { ids, action, notify }),
            (_, _, _) => Err(faults),
        }
    }
}

fn read_ids(sent: &[String]) -> Result<Vec<SentMonitorId>, Rule> {
    if sent.is_empty() || sent.len() > MAX_BULK_MONITORS || sent.iter().any(|text| text.len() > MAX_ID) {
        return Err(format!("must be a list of 1 to {MAX_BULK_MONITORS} ids of monitors"));
    }
    let ids = sent.iter().map(|text| SentMonitorId { text: text.clone(), id: text.parse().ok() });
    let ids: Vec<SentMonitorId> = ids.collect();
    let (mut texts, mut known) = (BTreeSet::new(), BTreeSet::new());
    if ids.iter().all(|sent| texts.insert(&sent.text) && sent.id.is_none_or(|id| known.insert(id))) {
        Ok(ids)
    } else {
        Err("must name each monitor once".to_owned())
    }
}

fn invalid_fields(edit: &MonitorEdit) -> ValidationErrors {
    let check = CheckEdit { url: PatchField::Value(SAMPLE_URL.to_owned()), ..CheckEdit::default() };
    let sample = MonitorEdit { check, ..edit.clone() };
    sample.validate(None, "").err().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn ids(count: u128) -> PatchField<Vec<String>> {
        PatchField::Value((0..count).map(|n| MonitorId::from_u128(n).to_string()).collect())
    }

    fn sent<T>(value: T) -> PatchField<T> {
        PatchField::Value(value)
    }

    fn paused() -> PatchField<MonitorEdit> {
        PatchField::Value(MonitorEdit { paused: PatchField::Value(true), ..MonitorEdit::default() })
    }

    fn set(change: impl FnOnce(&mut MonitorEdit)) -> PatchField<MonitorEdit> {
        let mut edit = MonitorEdit::default();
        change(&mut edit);
        PatchField::Value(edit)
    }

    fn faults(edit: &MonitorBulkEdit) -> String {
        edit.validate().err().unwrap_or_default().to_string()
    }

    #[test]
    fn a_request_names_monitors_once_and_either_changes_or_deletes_them() {
        const LIST: &str = "monitorIds must be a list of 1 to 500 ids of monitors";
        const ONCE: &str = "monitorIds must name each monitor once";
        let one = MonitorId::from_u128(1).to_string();
        for (ids, set, delete, expected) in [
            (ids(1), paused(), PatchField::Absent, ""),
            (ids(500), paused(), sent(false), ""),
            (ids(2), PatchField::Absent, sent(true), ""),
            (sent(vec!["nonsense".to_owned()]), paused(), PatchField::Absent, ""),
            (ids(501), paused(), PatchField::Absent, LIST),
            (ids(0), paused(), PatchField::Absent, LIST),
            (sent(vec!["x".repeat(65)]), paused(), PatchField::Absent, LIST),
            (sent(vec![one.clone(), one]), paused(), PatchField::Absent, ONCE),
            (sent(vec!["x".to_owned(); 2]), paused(), PatchField::Absent, ONCE),
            (PatchField::Absent, paused(), PatchField::Absent, "monitorIds is required"),
            (ids(1), PatchField::Absent, PatchField::Absent, "set is required unless delete is true"),
            (ids(1), PatchField::Absent, sent(false), "set is required unless delete is true"),
            (ids(1), paused(), sent(true), "set must not be sent together with delete"),
            (ids(1), PatchField::Null, PatchField::Absent, "set is required"),
            (ids(1), paused(), PatchField::Null, "delete must not be null"),
        ] {
            let edit = MonitorBulkEdit { monitor_ids: ids, set, delete, notify: PatchField::Absent };
            assert_eq!(faults(&edit), expected);
        }
    }

    #[test]
    fn fields_are_validated_once_for_all_monitors() {
        let regions = |name: &str| PatchField::Value(vec![name.to_owned()]);
        for (set, expected) in [
            (set(|_| ()), ""),
            (set(|edit| edit.slow_threshold_ms = PatchField::Value(9999)), ""),
            (set(|edit| edit.slow_threshold_ms = PatchField::Null), ""),
            (set(|edit| edit.latency_regions = regions("asia")), ""),
            (
                set(|edit| edit.slow_threshold_ms = PatchField::Value(0)),
                "set.slowThresholdMs must be a whole number from 1 to 9999",
            ),
            (set(|edit| edit.group = PatchField::Value("x".repeat(61))), "set.groupName must be at most 60 characters"),
            (
                set(|edit| {
                    edit.slow_thresholds = PatchField::Value(BTreeMap::from([("asia".to_owned(), 0)]));
                    edit.paused = PatchField::Invalid("must be true or false".to_owned());
                }),
                "set.slowThresholds must have milliseconds as values: each must be a whole number from 1 to 9999; \
                 set.paused must be true or false",
            ),
            (
                set(|edit| edit.read_only_errors.add("url", "can't be set for many monitors")),
                "set.url can't be set for many monitors",
            ),
        ] {
            assert_eq!(faults(&MonitorBulkEdit { monitor_ids: ids(1), set, ..MonitorBulkEdit::default() }), expected);
        }
    }
}
