//! Deploy markers: releases drawn on the response-time chart.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::id::{DeployId, MonitorId, PageId};
use crate::incident::MAX_AFFECTED;
use crate::incident::edit::read_past;
use crate::patch::PatchField;
use crate::text;
use crate::time::Timestamp;
use crate::validation::{Rule, ValidationErrors};

/// Maximum length of a version, in characters.
pub const MAX_VERSION: usize = 80;
/// Maximum length of a marker's URL, in characters.
pub const MAX_URL: usize = 500;
/// Maximum length of a marker's note, in characters.
pub const MAX_NOTE: usize = 500;

/// Markers kept for a page: a further one replaces the oldest.
pub const MAX_DEPLOYS: usize = 1000;

/// A deploy marker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deploy {
    /// Its id.
    pub id: DeployId,
    /// The page it is on.
    pub page: PageId,
    /// Version that was deployed.
    pub version: String,
    /// URL of the release.
    pub url: Option<String>,
    /// Note of one line.
    pub note: Option<String>,
    /// Affected monitors; none means all.
    pub monitors: Option<Vec<MonitorId>>,
    /// Time of the deploy.
    pub at: Timestamp,
    /// Creation time of the marker.
    pub created_at: Timestamp,
}

/// A marker's fields, as sent.
#[derive(Debug, Clone, Default)]
pub struct DeployEdit {
    /// Version, tag or commit.
    pub version: PatchField<String>,
    /// URL of the release.
    pub url: PatchField<String>,
    /// Note of one line.
    pub note: PatchField<String>,
    /// Time of the deploy.
    pub at: PatchField<String>,
    /// Affected monitors, by id.
    pub monitor_ids: PatchField<Vec<String>>,
}

impl DeployEdit {
    /// Validates the fields of a new marker on a page with these monitors.
    ///
    /// # Errors
    /// Every field that breaks a rule.
    pub fn validate(
        &self,
        id: DeployId,
        page: PageId,
        monitors: &BTreeSet<MonitorId>,
        now: Timestamp,
    ) -> Result<Deploy, ValidationErrors> {
        let mut faults = ValidationErrors::new();
        let version =
            self.version.required("version", None, &mut faults, |version| text::line(version, 1..=MAX_VERSION));
        let url = self.url.optional("url", None, &mut faults, |url| read_url(url));
        let note = self.note.optional("note", None, &mut faults, |note| text::optional_line(note, MAX_NOTE));
        let at = self.at.defaulted("at", None, now, &mut faults, |at| read_past(at, now));
        let monitors = self.monitor_ids.optional("monitorIds", None, &mut faults, |ids| {
            let known = |id: &String| id.trim().parse().ok().filter(|id| monitors.contains(id));
            let named: Option<BTreeSet<MonitorId>> = ids.iter().map(known).collect();
            let named = named.ok_or_else(|| "must be monitors of this page".to_owned())?;
            if named.len() > MAX_AFFECTED {
                return Err(format!("must be at most {MAX_AFFECTED} monitors"));
            }
            Ok((!named.is_empty()).then(|| named.into_iter().collect()))
        });
        match (version, at) {
            (Some(version), Some(at)) if faults.is_empty() => {
                Ok(Deploy { id, page, version, url, note, monitors, at, created_at: now })
            }
            (_, _) => Err(faults),
        }
    }
}

fn read_url(url: &str) -> Result<Option<String>, Rule> {
    let Some(url) = text::optional_line(url, MAX_URL)? else { return Ok(None) };
    let no_url = || "must be an http or https URL".to_owned();
    let starts = |scheme: &str| url.get(..scheme.len()).is_some_and(|it| it.eq_ignore_ascii_case(scheme));
    if !starts("http://") && !starts("https://") {
        return Err(no_url());
    }
    text::parse_web_url(&url).map_err(|_| no_url())?;
    Ok(Some(url))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::{DAY, MINUTE};

    fn now() -> Timestamp {
        Timestamp::from_millis(20_600 * DAY)
    }

    fn settle(edit: &DeployEdit) -> Result<Deploy, String> {
        let monitors = BTreeSet::from([MonitorId::from_u128(1)]);
        edit.validate(DeployId::from_u128(1), PageId::from_u128(2), &monitors, now())
            .map_err(|faults| faults.to_string())
    }

    fn value(text: &str) -> PatchField<String> {
        PatchField::Value(text.to_owned())
    }

    fn v1() -> DeployEdit {
        DeployEdit { version: value("v1"), ..DeployEdit::default() }
    }

    #[test]
    fn a_version_is_all_that_it_needs() {
        let deploy = settle(&v1()).unwrap();
        assert_eq!((deploy.at, deploy.url, deploy.note, deploy.monitors), (now(), None, None, None));
        assert_eq!(settle(&DeployEdit::default()).unwrap_err(), "version is required");
    }

    #[test]
    fn every_bound_is_kept() {
        let with = |edit: DeployEdit| settle(&edit).map(|_| ());
        assert!(with(DeployEdit { version: value(&"é".repeat(80)), ..v1() }).is_ok());
        assert!(with(DeployEdit { version: value(&"é".repeat(81)), ..v1() }).is_err());
        assert!(with(DeployEdit { version: value(" "), ..v1() }).is_err());
        let url = |length: usize| format!("https://example.com/{}", "a".repeat(length - 20));
        assert!(with(DeployEdit { url: value(&url(500)), ..v1() }).is_ok());
        assert!(with(DeployEdit { url: value(&url(501)), ..v1() }).is_err());
        for bad in ["example.com", "ftp://example.com", "https://", "javascript:alert(1)"] {
            assert!(with(DeployEdit { url: value(bad), ..v1() }).is_err(), "{bad}");
        }
        assert!(with(DeployEdit { note: value(&"é".repeat(500)), ..v1() }).is_ok());
        assert!(with(DeployEdit { note: value(&"é".repeat(501)), ..v1() }).is_err());
        let at = |at: Timestamp| with(DeployEdit { at: value(&at.to_string()), ..v1() });
        assert!(at(now() + 5 * MINUTE).is_ok() && at(now() + (5 * MINUTE + 1)).is_err());
        assert!(at(now() - 365 * DAY).is_ok() && at(now() - 367 * DAY).is_err());
        let one = |n: u128| PatchField::Value(vec![MonitorId::from_u128(n).to_string()]);
        assert!(with(DeployEdit { monitor_ids: one(1), ..v1() }).is_ok());
        assert!(with(DeployEdit { monitor_ids: one(2), ..v1() }).is_err());
        let none = DeployEdit { monitor_ids: PatchField::Value(vec![]), ..v1() };
        assert_eq!(settle(&none).unwrap().monitors, None);
    }
}
