//! Storage format of a round report in the journal: with the third outcome, which older records and lists of reports
//! lack.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::RoundReport;
use crate::late;
use crate::observation::Outcome;
use crate::place::PlaceNo;

#[derive(Deserialize)]
struct Whole {
    report: RoundReport,
    #[serde(deserialize_with = "late::or_default")]
    third: Option<(PlaceNo, Outcome)>,
}

pub(super) fn serialize<S: Serializer>(report: &RoundReport, serializer: S) -> Result<S::Ok, S::Error> {
    (report, &report.third).serialize(serializer)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<RoundReport, D::Error> {
    let Whole { report, third } = Whole::deserialize(from)?;
    Ok(RoundReport { third: third.map(Box::new), ..report })
}

#[cfg(test)]
mod tests {
    use crate::event::{Reason, RoundReport, What};
    use crate::observation::{Facts, Failure, Outcome, Word};
    use crate::place::{PlaceNo, Region};
    use crate::quarantine::Contradictions;
    use crate::time::Timestamp;

    fn report(third: Option<(PlaceNo, Outcome)>) -> RoundReport {
        RoundReport {
            region: Region::Asia,
            reason: Reason::Scheduled,
            round: Some(7),
            started: Timestamp::from_millis(1_000),
            word: Word::Disputed,
            first: PlaceNo(1),
            outcome: Outcome::Failed(Facts::default(), Failure::Refused),
            second: Some((PlaceNo(2), Outcome::Passed(Facts::default()))),
            third: third.map(Box::new),
        }
    }

    #[test]
    fn a_third_word_is_read_back_and_an_older_record_has_none() {
        let third = Some((PlaceNo(3), Outcome::Passed(Facts::default())));
        let with = What::Round(report(third.clone()));
        let bytes = postcard::to_allocvec(&with).unwrap();
        assert_eq!(postcard::from_bytes::<What>(&bytes).unwrap(), with);
        let without = What::Round(report(None));
        let bytes = postcard::to_allocvec(&without).unwrap();
        let older = bytes.strip_suffix(&[0]).unwrap();
        assert_eq!(postcard::from_bytes::<What>(older).unwrap(), without);
        // Reports in lists keep their old format, since list elements cannot have trailing fields.
        let listed = postcard::to_allocvec(&[report(third)].as_slice()).unwrap();
        assert_eq!(postcard::from_bytes::<Vec<RoundReport>>(&listed).unwrap(), [report(None)]);
        assert_eq!(&listed[1..], &older[1..]);
    }

    #[test]
    fn an_older_quarantine_names_nobody() {
        let by = vec![(PlaceNo(2), 5)];
        let with = What::Quarantine(PlaceNo(1), true, Contradictions { words: 6, contradicted: 5, by });
        let bytes = postcard::to_allocvec(&with).unwrap();
        assert_eq!(postcard::from_bytes::<What>(&bytes).unwrap(), with);
        let bare = What::Quarantine(PlaceNo(1), true, Contradictions::default());
        let bytes = postcard::to_allocvec(&bare).unwrap();
        assert_eq!(postcard::from_bytes::<What>(bytes.strip_suffix(&[0, 0, 0]).unwrap()).unwrap(), bare);
    }
}
