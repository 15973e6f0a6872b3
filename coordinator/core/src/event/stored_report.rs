//! Storage format of a round report in the journal: with the third outcome, which older records and lists of reports
//! lack.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::RoundReport;
use crate::compat;
use crate::observation::ProbeOutcome;
use crate::vantage::VantageNo;

#[derive(Deserialize)]
struct StoredRoundReport {
    report: RoundReport,
    #[serde(deserialize_with = "compat::or_default")]
    third: Option<(VantageNo, ProbeOutcome)>,
}

pub(super) fn serialize<S: Serializer>(report: &RoundReport, serializer: S) -> Result<S::Ok, S::Error> {
    (report, &report.third).serialize(serializer)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<RoundReport, D::Error> {
    let StoredRoundReport { report, third } = StoredRoundReport::deserialize(from)?;
    Ok(RoundReport { third: third.map(Box::new), ..report })
}

#[cfg(test)]
mod tests {
    use crate::event::{EventKind, ProbeReason, RoundReport};
    use crate::observation::{Failure, Measurements, ProbeOutcome, RoundOutcome};
    use crate::quarantine::Contradictions;
    use crate::time::Timestamp;
    use crate::vantage::{Region, VantageNo};

    fn report(third: Option<(VantageNo, ProbeOutcome)>) -> RoundReport {
        RoundReport {
            region: Region::Asia,
            reason: ProbeReason::Scheduled,
            round: Some(7),
            started: Timestamp::from_millis(1_000),
            round_outcome: RoundOutcome::Disputed,
            first_vantage: VantageNo(1),
            first_outcome: ProbeOutcome::Failed(Measurements::default(), Failure::Refused),
            second: Some((VantageNo(2), ProbeOutcome::Passed(Measurements::default()))),
            third: third.map(Box::new),
        }
    }

    #[test]
    fn a_third_outcome_is_read_back_and_an_older_record_has_none() {
        let third = Some((VantageNo(3), ProbeOutcome::Passed(Measurements::default())));
        let with = EventKind::Round(report(third.clone()));
        let bytes = postcard::to_allocvec(&with).unwrap();
        assert_eq!(postcard::from_bytes::<EventKind>(&bytes).unwrap(), with);
        let without = EventKind::Round(report(None));
        let bytes = postcard::to_allocvec(&without).unwrap();
        let older = bytes.strip_suffix(&[0]).unwrap();
        assert_eq!(postcard::from_bytes::<EventKind>(older).unwrap(), without);
        // Reports in lists keep their old format, since list elements cannot have trailing fields.
        let listed = postcard::to_allocvec(&[report(third)].as_slice()).unwrap();
        assert_eq!(postcard::from_bytes::<Vec<RoundReport>>(&listed).unwrap(), [report(None)]);
        assert_eq!(&listed[1..], &older[1..]);
    }

    #[test]
    fn an_older_quarantine_event_has_no_contradictions() {
        let by = vec![(VantageNo(2), 5)];
        let with =
            EventKind::QuarantineChanged(VantageNo(1), true, Contradictions { outcomes: 6, contradicted: 5, by });
        let bytes = postcard::to_allocvec(&with).unwrap();
        assert_eq!(postcard::from_bytes::<EventKind>(&bytes).unwrap(), with);
        let bare = EventKind::QuarantineChanged(VantageNo(1), true, Contradictions::default());
        let bytes = postcard::to_allocvec(&bare).unwrap();
        assert_eq!(postcard::from_bytes::<EventKind>(bytes.strip_suffix(&[0, 0, 0]).unwrap()).unwrap(), bare);
    }
}
