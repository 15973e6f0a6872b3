//! Times in requests: with an offset, or as local time in the zone of the `timezone` field.

use chrono_tz::Tz;

use super::IncidentEdit;
use crate::patch::PatchField;
use crate::recurrence;
use crate::time::Timestamp;
use crate::validation::{Rule, ValidationErrors};

impl IncidentEdit {
    /// Parses a time. Without an offset it is local time in `timezone`: a time that a clock change skips is
    /// the first moment after the gap; one that occurs twice is the first of the two.
    ///
    /// # Errors
    /// The rule that the text breaks.
    pub(super) fn parse_time(&self, text: &str) -> Result<Timestamp, Rule> {
        read_time(text, self.parsed_zone())
    }

    /// Validates `timezone` where its value is not used.
    pub(super) fn check_timezone(&self, faults: &mut ValidationErrors) {
        self.timezone.optional("timezone", None, faults, |zone| read_zone(zone).map(Some));
    }

    /// The time zone that was sent; none if it is invalid, which is reported for that field.
    fn parsed_zone(&self) -> Option<Tz> {
        match &self.timezone {
            PatchField::Value(zone) => read_zone(zone).ok(),
            PatchField::Absent | PatchField::Null | PatchField::Invalid(_) => None,
        }
    }
}

/// Parses a time in ISO 8601: with an offset, or in the given zone.
///
/// # Errors
/// The rule that the text breaks.
pub(super) fn read_time(text: &str, zone: Option<Tz>) -> Result<Timestamp, Rule> {
    let local = || recurrence::local_to_timestamp(zone?, Timestamp::parse_local(text)?);
    Timestamp::parse_iso(text).or_else(local).ok_or_else(|| {
        let is_local = zone.is_none() && Timestamp::parse_local(text).is_some();
        let rule = "must be an ISO 8601 time with an offset, like 2026-01-31T12:00:00Z";
        if is_local { format!("{rule}; for a local time, also send timezone") } else { rule.to_owned() }
    })
}

/// Parses an IANA time zone.
///
/// # Errors
/// The rule that the text breaks.
pub(super) fn read_zone(zone: &str) -> Result<Tz, Rule> {
    zone.trim().parse().map_err(|_| "must be an IANA time zone".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_local_time_is_read_in_the_zone_beside_it() {
        let berlin = Some(chrono_tz::Europe::Berlin);
        for (text, zone, expected) in [
            ("2027-01-31T12:00:00", berlin, Some("2027-01-31T11:00:00.000Z")),
            ("2027-07-31 12:00", berlin, Some("2027-07-31T10:00:00.000Z")),
            // An offset takes precedence over the zone.
            ("2027-07-31T12:00:00Z", berlin, Some("2027-07-31T12:00:00.000Z")),
            // The clocks go from 2 to 3 o'clock on 28 March, and from 3 to 2 on 31 October.
            ("2027-03-28T02:30:00", berlin, Some("2027-03-28T01:00:00.000Z")),
            ("2027-10-31T02:30:00", berlin, Some("2027-10-31T00:30:00.000Z")),
            ("2027-01-31", berlin, None),
            ("2027-02-30T12:00:00", berlin, None),
            ("tomorrow", berlin, None),
            ("2027-01-31T12:00:00", None, None),
        ] {
            let read = read_time(text, zone).map(|at| at.to_string());
            assert_eq!(read.as_deref().ok(), expected, "{text}");
        }
        let hint = |text: &str| read_time(text, None).unwrap_err().contains("timezone");
        assert!(hint("2027-01-31T12:00:00") && !hint("tomorrow"));
    }
}
