//! Batches of results: plain passes packed to less than three bytes, everything else in full.
//!
//! A result is plain if it passed in a scheduled round, has a latency, and carries nothing else but a status
//! code, phases and address. Plain results become six columns (`PlainRun`), with the rarer phases and
//! addresses in a separate run (`DetailRun`); all others are whole records with their position in the batch.
//! The order of results is kept, so only the first sequence number is sent.

use self::details::DetailRun;
use crate::error::ProtocolError;
use crate::id::{BootId, WireMonitorId};
use crate::result::{CheckResult, NumberedResult, ProbeReport, WireOutcome, WirePhases};
use crate::rice::{RiceReader, RiceWriter, best_parameter};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::IpAddr;

mod details;

/// A frame of the results stream. New variants go to the end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ResultFrame {
    /// Results in order of their sequence numbers.
    Batch(ResultBatch),
}

/// Consecutive results of one boot, packed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResultBatch {
    boot: BootId,
    first_seq: u64,
    sent_ms: i64,
    count: u16,
    plain: PlainRun,
    details: Option<DetailRun>,
    full: Vec<FullResult>,
}

/// Plain passed results as columns, in order: difference of the slot to the previous one (modulo 2^32), index
/// into `rounds`, index into `kinds`, latency, age, and the rest of the time between start and sending. The
/// last three have their column's minimum subtracted; `lowest` holds the minimums.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
struct PlainRun {
    rounds: Vec<u64>,
    kinds: Vec<(u32, Option<u16>)>,
    minimums: ColumnMinimums,
    parameters: [u8; COLUMNS],
    bits: Vec<u8>,
}

/// Minimum of each column that has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
struct ColumnMinimums {
    latency_ms: u32,
    age_ms: u64,
    slack_ms: i64,
}

/// A result that is not plain, with its position in the batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct FullResult {
    index: u16,
    result: CheckResult,
}

const COLUMNS: usize = 6;

/// A decoded batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnpackedBatch {
    /// The boot that the sequence numbers belong to.
    pub boot: BootId,
    /// First sequence number of the batch.
    pub first_seq: u64,
    /// Last sequence number of the batch.
    pub through: u64,
    /// Time of sending, epoch ms by the agent's estimate of the coordinator's clock.
    pub sent_ms: i64,
    /// The results in order of their sequence numbers.
    pub results: Vec<NumberedResult>,
    /// Number of results left out because their slot no longer maps to a monitor; their sequence numbers
    /// count as received.
    pub unknown_slots: usize,
}

impl ResultBatch {
    /// Maximum number of results in a batch.
    pub const MAX: usize = 500;

    /// Packs results with consecutive sequence numbers, each with its `age_ms` as of `sent_ms`. `slot_of`
    /// returns a monitor's slot in the connection's slot epoch; a monitor without one is sent in full. Plain
    /// results are smallest if neighbours have neighbouring slots.
    ///
    /// # Errors
    /// [`ProtocolError::Invalid`] for an empty batch, more than [`Self::MAX`] results, or numbers that are
    /// not consecutive.
    pub fn pack(
        boot: BootId,
        sent_ms: i64,
        results: &[NumberedResult],
        mut slot_of: impl FnMut(WireMonitorId) -> Option<u32>,
    ) -> Result<Self, ProtocolError> {
        let invalid = |rule| ProtocolError::Invalid { field: "batch", rule };
        let first_seq = results.first().ok_or_else(|| invalid("must not be empty"))?.seq;
        if results.len() > Self::MAX {
            return Err(invalid("must have at most 500 results"));
        }
        let mut plain = Vec::with_capacity(results.len());
        let mut full = Vec::new();
        for (index, numbered) in (0u16..).zip(results) {
            if numbered.seq != first_seq.wrapping_add(u64::from(index)) {
                return Err(invalid("must have consecutive numbers"));
            }
            let result = &numbered.result;
            match plain_row_of(result, sent_ms).and_then(|p| Some((slot_of(result.monitor)?, p))) {
                Some((slot, row)) => plain.push(PlainRow { slot, ..row }),
                None => full.push(FullResult { index, result: result.clone() }),
            }
        }
        let count = u16::try_from(results.len()).unwrap_or(u16::MAX);
        let details = DetailRun::pack(&plain);
        Ok(Self { boot, first_seq, sent_ms, count, plain: PlainRun::pack(&plain), details, full })
    }

    /// Decodes a batch. `monitor_of` returns the monitor of a slot.
    ///
    /// # Errors
    /// [`ProtocolError::Invalid`] if the batch is not in the form that [`Self::pack`] produces.
    pub fn unpack(
        self,
        mut monitor_of: impl FnMut(u32) -> Option<WireMonitorId>,
    ) -> Result<UnpackedBatch, ProtocolError> {
        let invalid = |rule| ProtocolError::Invalid { field: "batch", rule };
        let count = usize::from(self.count);
        if count == 0 || count > Self::MAX {
            return Err(invalid("must have 1 to 500 results"));
        }
        let through =
            self.first_seq.checked_add(u64::from(self.count) - 1).ok_or_else(|| invalid("has numbers out of range"))?;
        let plain_count = count.checked_sub(self.full.len()).ok_or_else(|| invalid("has more records than results"))?;
        let mut plain = self.plain.unpack(plain_count)?;
        if let Some(details) = &self.details {
            details.unpack(&mut plain).ok_or_else(|| invalid("has broken details"))?;
        }
        let mut plain = plain.into_iter();
        let mut full = self.full.into_iter().peekable();
        let mut results = Vec::with_capacity(count);
        let mut unknown = 0;
        for (index, seq) in (0..self.count).zip(self.first_seq..) {
            if let Some(record) = full.next_if(|record| record.index == index) {
                results.push(NumberedResult { seq, result: record.result });
                continue;
            }
            let row = plain.next().ok_or_else(|| invalid("has records out of order"))?;
            match monitor_of(row.slot) {
                Some(monitor) => {
                    let result = row.result(monitor, self.sent_ms).ok_or_else(|| invalid("has times out of range"))?;
                    results.push(NumberedResult { seq, result });
                }
                None => unknown += 1,
            }
        }
        if full.next().is_some() {
            return Err(invalid("has records out of order"));
        }
        let (boot, first_seq, sent_ms) = (self.boot, self.first_seq, self.sent_ms);
        Ok(UnpackedBatch { boot, first_seq, through, sent_ms, results, unknown_slots: unknown })
    }
}

/// Returns true if a result is packed rather than sent in full, given that its monitor has a slot.
pub fn is_plain(result: &CheckResult) -> bool {
    let report = &result.report;
    result.round.is_some()
        && report.outcome == WireOutcome::Passed
        && report.latency_ms.is_some()
        && report.expires_ms.is_none()
        && report.vendor.is_none()
}

#[derive(Debug, Clone, Copy)]
struct PlainRow {
    slot: u32,
    round: u64,
    kind: (u32, Option<u16>),
    latency_ms: u32,
    age_ms: u64,
    slack_ms: i64,
    phases: WirePhases,
    address: Option<IpAddr>,
}

impl PlainRow {
    fn result(self, monitor: WireMonitorId, sent_ms: i64) -> Option<CheckResult> {
        let started_ms = sent_ms
            .checked_sub(i64::try_from(self.age_ms).ok()?)?
            .checked_sub(i64::from(self.latency_ms))?
            .checked_sub(self.slack_ms)?;
        let (revision, status_code) = self.kind;
        Some(CheckResult {
            monitor,
            revision,
            round: Some(self.round),
            started_ms,
            age_ms: self.age_ms,
            report: ProbeReport {
                latency_ms: Some(self.latency_ms),
                phases: self.phases,
                status_code,
                address: self.address,
                ..ProbeReport::outcome_only(WireOutcome::Passed)
            },
        })
    }
}

fn plain_row_of(result: &CheckResult, sent_ms: i64) -> Option<PlainRow> {
    if !is_plain(result) {
        return None;
    }
    let latency_ms = result.report.latency_ms?;
    let slack_ms = sent_ms
        .checked_sub(i64::try_from(result.age_ms).ok()?)?
        .checked_sub(i64::from(latency_ms))?
        .checked_sub(result.started_ms)?;
    Some(PlainRow {
        slot: 0,
        round: result.round?,
        kind: (result.revision, result.report.status_code),
        latency_ms,
        age_ms: result.age_ms,
        slack_ms,
        phases: result.report.phases,
        address: result.report.address,
    })
}

impl PlainRun {
    fn pack(rows: &[PlainRow]) -> Self {
        let (rounds, round_index) = dictionary(rows.iter().map(|row| row.round));
        let (kinds, kind_index) = dictionary(rows.iter().map(|row| row.kind));
        let mut columns: [Vec<u64>; COLUMNS] = Default::default();
        let [slots, round_column, kind_column, latencies, ages, slacks] = &mut columns;
        let lowest = ColumnMinimums {
            latency_ms: rows.iter().map(|row| row.latency_ms).min().unwrap_or_default(),
            age_ms: rows.iter().map(|row| row.age_ms).min().unwrap_or_default(),
            slack_ms: rows.iter().map(|row| row.slack_ms).min().unwrap_or_default(),
        };
        let mut last_slot = 0;
        for row in rows {
            slots.push(u64::from(row.slot.wrapping_sub(last_slot)));
            last_slot = row.slot;
            round_column.push(round_index.get(&row.round).copied().unwrap_or_default());
            kind_column.push(kind_index.get(&row.kind).copied().unwrap_or_default());
            latencies.push(u64::from(row.latency_ms.saturating_sub(lowest.latency_ms)));
            ages.push(row.age_ms.saturating_sub(lowest.age_ms));
            // Two's complement: a difference too large for the sign wraps back to the same value.
            slacks.push(row.slack_ms.wrapping_sub(lowest.slack_ms).cast_unsigned());
        }
        let mut writer = RiceWriter::default();
        let mut parameters = [0; COLUMNS];
        for (column, parameter) in columns.iter().zip(&mut parameters) {
            *parameter = best_parameter(column);
            for &value in column {
                writer.rice(value, *parameter);
            }
        }
        Self { rounds, kinds, minimums: lowest, parameters, bits: writer.finish() }
    }

    fn unpack(&self, count: usize) -> Result<Vec<PlainRow>, ProtocolError> {
        let broken = ProtocolError::Invalid { field: "batch", rule: "has a broken packed run" };
        let mut reader = RiceReader::new(&self.bits);
        let mut columns: [Vec<u64>; COLUMNS] = Default::default();
        for (column, &parameter) in columns.iter_mut().zip(&self.parameters) {
            column.reserve_exact(count);
            for _ in 0..count {
                column.push(reader.rice(parameter).ok_or_else(|| broken.clone())?);
            }
        }
        if !reader.is_finished() {
            return Err(broken);
        }
        self.rows(&columns).ok_or(broken)
    }

    fn rows(&self, columns: &[Vec<u64>; COLUMNS]) -> Option<Vec<PlainRow>> {
        let [slots, rounds, kinds, latencies, ages, slacks] = columns;
        let rest = rounds.iter().zip(kinds).zip(latencies).zip(ages).zip(slacks);
        let mut slot = 0u32;
        let mut rows = Vec::with_capacity(slots.len());
        for (&distance, ((((&round, &kind), &latency), &age), &slack)) in slots.iter().zip(rest) {
            slot = slot.wrapping_add(u32::try_from(distance).ok()?);
            rows.push(PlainRow {
                slot,
                round: *self.rounds.get(usize::try_from(round).ok()?)?,
                kind: *self.kinds.get(usize::try_from(kind).ok()?)?,
                latency_ms: u32::try_from(latency).ok()?.checked_add(self.minimums.latency_ms)?,
                age_ms: age.checked_add(self.minimums.age_ms)?,
                slack_ms: slack.cast_signed().wrapping_add(self.minimums.slack_ms),
                phases: WirePhases::default(),
                address: None,
            });
        }
        Some(rows)
    }
}

/// Returns the distinct values, most frequent first, and the index of each.
fn dictionary<T: Ord + Copy>(values: impl Iterator<Item = T>) -> (Vec<T>, BTreeMap<T, u64>) {
    let mut counts: BTreeMap<T, usize> = BTreeMap::new();
    for value in values {
        *counts.entry(value).or_default() += 1;
    }
    let mut sorted: Vec<(T, usize)> = counts.into_iter().collect();
    sorted.sort_by_key(|&(value, count)| (std::cmp::Reverse(count), value));
    let list: Vec<T> = sorted.into_iter().map(|(value, _)| value).collect();
    let index = list.iter().copied().zip(0..).collect();
    (list, index)
}

#[cfg(test)]
mod tests;
