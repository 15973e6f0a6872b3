//! Validation of a new order of a page's monitors, as sent in a request.

use std::collections::BTreeSet;

use crate::id::MonitorId;
use crate::patch::PatchField;
use crate::validation::{Rule, ValidationErrors};

/// Monitors in one request, at most: more than any plan has by default.
pub const MAX_ORDERED_MONITORS: usize = 2_000;

/// A new order of a page's monitors, as sent.
#[derive(Debug, Clone, Default)]
pub struct MonitorOrderEdit {
    /// Ids of all monitors of the page.
    pub monitor_ids: PatchField<Vec<String>>,
}

impl MonitorOrderEdit {
    /// Validates the order against the present one.
    ///
    /// # Errors
    /// An order that does not name every monitor of the page once.
    pub fn validate(&self, present: &[MonitorId]) -> Result<Vec<MonitorId>, ValidationErrors> {
        let mut faults = ValidationErrors::new();
        let ids = self.monitor_ids.required("monitorIds", None, &mut faults, |sent| read(sent, present));
        ids.ok_or(faults)
    }
}

fn read(sent: &[String], present: &[MonitorId]) -> Result<Vec<MonitorId>, Rule> {
    let ids: Vec<MonitorId> = sent.iter().filter_map(|text| text.parse().ok()).collect();
    let is_complete = [sent.len(), ids.len()] == [present.len(); 2]
        && ids.iter().collect::<BTreeSet<_>>() == present.iter().collect::<BTreeSet<_>>();
    if is_complete { Ok(ids) } else { Err("must name every monitor of the page once".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_names_every_monitor_once() {
        let [first, second, third] = [1, 2, 3].map(MonitorId::from_u128);
        let sent = |ids: &[MonitorId]| PatchField::Value(ids.iter().map(ToString::to_string).collect());
        const RULE: &str = "monitorIds must name every monitor of the page once";
        for (ids, expected) in [
            (sent(&[second, first]), Ok(vec![second, first])),
            (sent(&[first, second]), Ok(vec![first, second])),
            (PatchField::Absent, Err("monitorIds is required")),
            (sent(&[first]), Err(RULE)),
            (sent(&[]), Err(RULE)),
            (sent(&[first, first]), Err(RULE)),
            (sent(&[first, second, second]), Err(RULE)),
            (sent(&[first, third]), Err(RULE)),
            (sent(&[first, second, third]), Err(RULE)),
            (PatchField::Value(vec!["nonsense".to_owned(), first.to_string(), second.to_string()]), Err(RULE)),
            (PatchField::Null, Err("monitorIds is required")),
        ] {
            let order =
                MonitorOrderEdit { monitor_ids: ids }.validate(&[first, second]).map_err(|faults| faults.to_string());
            assert_eq!(order, expected.map_err(str::to_owned));
        }
        assert_eq!(MonitorOrderEdit { monitor_ids: sent(&[]) }.validate(&[]), Ok(vec![]), "a page without monitors");
    }
}
