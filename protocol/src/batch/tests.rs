//! Tests of the size and fidelity of packed batches.

use super::*;
use crate::frame;
use crate::result::WireFailure;
use proptest::prelude::*;

const SENT: i64 = 1_790_000_000_000;

/// A small reproducible number generator, so that the measured size is stable.
struct SeededNumbers(u64);

impl SeededNumbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

fn plain(monitor: u32, latency_ms: u32, age_ms: u64) -> CheckResult {
    CheckResult {
        monitor: WireMonitorId(u128::from(monitor)),
        revision: 1,
        round: Some(29_833_333),
        started_ms: SENT - i64::from(latency_ms) - age_ms.cast_signed(),
        age_ms,
        report: ProbeReport {
            latency_ms: Some(latency_ms),
            status_code: Some(200),
            ..ProbeReport::outcome_only(WireOutcome::Passed)
        },
    }
}

fn numbered(results: impl IntoIterator<Item = CheckResult>) -> Vec<NumberedResult> {
    (7..).zip(results).map(|(seq, result)| NumberedResult { seq, result }).collect()
}

fn slot_of(monitor: WireMonitorId) -> Option<u32> {
    u32::try_from(monitor.0).ok()
}

fn monitor_of(slot: u32) -> Option<WireMonitorId> {
    Some(WireMonitorId(u128::from(slot)))
}

/// 300 results as a busy agent with 2000 monitors sends them: sorted by slot, three intervals, two revisions
/// and status codes, latencies from 5 to 400 ms, ages up to 20 ms.
fn busy_batch() -> Vec<NumberedResult> {
    let mut numbers = SeededNumbers(42);
    let mut slots: Vec<u32> = (0..300).map(|_| u32::try_from(numbers.below(2000)).unwrap()).collect();
    slots.sort_unstable();
    numbered(slots.into_iter().map(|slot| {
        let mut result = plain(slot, u32::try_from(5 + numbers.below(395)).unwrap(), numbers.below(20));
        let interval = [30, 60, 60, 60, 300][usize::try_from(numbers.below(5)).unwrap()];
        result.round = Some(u64::try_from(SENT).unwrap() / 1000 / interval - numbers.below(2));
        result.revision = u32::try_from(1 + numbers.below(20) / 15).unwrap();
        result.started_ms -= i64::try_from(numbers.below(2)).unwrap();
        if numbers.below(20) == 0 {
            result.report.status_code = Some(204);
        }
        result
    }))
}

#[test]
fn a_plain_result_costs_at_most_three_and_a_half_bytes_in_a_busy_batch() {
    let results = busy_batch();
    let batch = ResultBatch::pack(BootId(u64::MAX), SENT, &results, slot_of).unwrap();
    let bytes = frame::encode(&ResultFrame::Batch(batch.clone()), frame::MAX_FRAME).unwrap().len();
    let mean = bytes as f64 / results.len() as f64;
    println!("{mean:.2} bytes a plain result, frame and header included");
    assert!(mean <= 3.5, "{mean}");
    assert_eq!(batch.unpack(monitor_of).unwrap().results, results);
}

#[test]
fn a_result_with_details_costs_at_most_twelve_bytes_more() {
    let bare = busy_batch();
    let mut numbers = SeededNumbers(7);
    let mut results = bare.clone();
    let mut detailed = 0;
    for numbered in results.iter_mut().filter(|_| numbers.below(20) == 0) {
        let report = &mut numbered.result.report;
        report.phases.connect_us = Some(20_000);
        report.phases.first_byte_us = Some(90_000);
        report.address = Some("192.0.2.77".parse().unwrap());
        detailed += 1;
    }
    let size = |results: &[NumberedResult]| {
        let batch = ResultBatch::pack(BootId(u64::MAX), SENT, results, slot_of).unwrap();
        frame::encode(&ResultFrame::Batch(batch), frame::MAX_FRAME).unwrap().len()
    };
    let more = (size(&results) - size(&bare)) as f64 / f64::from(detailed);
    println!("{more:.2} bytes more for a result with details");
    assert!(more <= 12.0, "{more}");
}

#[test]
fn details_without_a_result_are_refused() {
    let mut detailed = plain(1, 1, 0);
    detailed.report.phases.connect_us = Some(300);
    let results = numbered([plain(1, 1, 0), detailed]);
    let batch = ResultBatch::pack(BootId(1), SENT, &results, slot_of).unwrap();
    let other = ResultBatch::pack(BootId(1), SENT, &results[..1], slot_of).unwrap();
    assert!(ResultBatch { details: batch.details, ..other }.unpack(monitor_of).is_err());
}

#[test]
fn a_result_with_details_keeps_its_position_and_fields() {
    let mut failed = plain(5, 3, 1);
    failed.report = ProbeReport::outcome_only(WireOutcome::Failed(WireFailure::Refused));
    let mut now = plain(5, 3, 1);
    now.round = None;
    let mut phased = plain(5, 3, 1);
    phased.report.phases.dns_us = Some(812);
    let mut placed = plain(5, 3, 1);
    placed.report.address = Some("2001:db8::7".parse().unwrap());
    let mut unslotted = plain(5, 3, 1);
    unslotted.monitor = WireMonitorId(u128::MAX);
    let results = numbered([failed, plain(9, 1, 0), now, phased, plain(2, 8, 3), placed, unslotted]);
    let batch = ResultBatch::pack(BootId(1), SENT, &results, slot_of).unwrap();
    let unpacked = batch.unpack(monitor_of).unwrap();
    assert_eq!(unpacked.results, results);
    assert_eq!((unpacked.first_seq, unpacked.through), (7, 13));
}

#[test]
fn a_slot_without_a_monitor_is_counted() {
    let results = numbered([plain(1, 1, 0), plain(2, 1, 0)]);
    let batch = ResultBatch::pack(BootId(1), SENT, &results, slot_of).unwrap();
    let unpacked = batch.unpack(|slot| if slot == 1 { monitor_of(slot) } else { None }).unwrap();
    assert_eq!((unpacked.results.len(), unpacked.unknown_slots, unpacked.through), (1, 1, 8));
}

#[test]
fn gaps_and_wrong_sizes_are_refused() {
    let mut results = numbered([plain(1, 1, 0), plain(2, 1, 0)]);
    results[1].seq += 1;
    let pack = |results: &[NumberedResult]| ResultBatch::pack(BootId(1), SENT, results, slot_of);
    assert!(pack(&results).is_err());
    assert!(pack(&[]).is_err());
    assert!(pack(&numbered((0..501).map(|n| plain(n, 1, 0)))).is_err());
    assert!(pack(&numbered((0..500).map(|n| plain(n, 1, 0)))).is_ok());
}

#[test]
fn a_batch_that_claims_more_than_it_holds_is_refused() {
    let results = numbered([plain(1, 1, 0), plain(2, 1, 0)]);
    let batch = ResultBatch::pack(BootId(1), SENT, &results, slot_of).unwrap();
    for count in [0, 1, 3, 300, 501, u16::MAX] {
        assert!(ResultBatch { count, ..batch.clone() }.unpack(monitor_of).is_err(), "{count}");
    }
    let late = ResultBatch { first_seq: u64::MAX, ..batch };
    assert!(late.unpack(monitor_of).is_err());
}

#[test]
fn results_out_of_order_round_trip() {
    let results = numbered([plain(1900, 9, 40), plain(3, 1, 90), plain(u32::MAX, 7, 0), plain(0, 7, 0)]);
    let batch = ResultBatch::pack(BootId(1), SENT, &results, slot_of).unwrap();
    assert_eq!(batch.unpack(monitor_of).unwrap().results, results);
}

proptest! {
    #[test]
    fn any_plain_result_round_trips(
        rows in prop::collection::vec(
            (
                (any::<u32>(), any::<u32>(), any::<u64>(), any::<u32>(), any::<u64>(), any::<i64>(), any::<Option<u16>>()),
                any::<Option<[Option<u32>; 5]>>(),
                any::<Option<IpAddr>>(),
            ),
            1..60,
        ),
        sent_ms in any::<i64>(),
    ) {
        let results = numbered(rows.into_iter().map(|(row, durations, address)| {
            let (slot, revision, round, latency, age_ms, started_ms, code) = row;
            let [dns_us, connect_us, tls_us, first_byte_us, transfer_us] = durations.unwrap_or_default();
            CheckResult {
                monitor: WireMonitorId(u128::from(slot)),
                revision,
                round: Some(round),
                started_ms,
                age_ms,
                report: ProbeReport {
                    latency_ms: Some(latency),
                    status_code: code,
                    phases: WirePhases { dns_us, connect_us, tls_us, first_byte_us, transfer_us },
                    address,
                    ..ProbeReport::outcome_only(WireOutcome::Passed)
                },
            }
        }));
        let batch = ResultBatch::pack(BootId(3), sent_ms, &results, slot_of).unwrap();
        prop_assert_eq!(batch.unpack(monitor_of).unwrap().results, results);
    }
}
