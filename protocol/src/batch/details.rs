//! Phases and addresses of the plain results that carry them, as bit-packed columns.

use super::PlainRow;
use crate::result::WirePhases;
use crate::rice::{RiceReader, RiceWriter, best_parameter};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// Number of durations in [`WirePhases`].
const PHASES: usize = 5;

/// Details in the order of their results: number of plain results without details before it, the phases
/// present and the address family, the durations of the phases, the address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct DetailRun {
    count: u16,
    /// Parameters of the distances, then of each phase's durations.
    parameters: [u8; 1 + PHASES],
    bits: Vec<u8>,
}

impl DetailRun {
    /// Packs the details of these rows; returns `None` if they have none.
    pub(super) fn pack(rows: &[PlainRow]) -> Option<Self> {
        let mut distances = Vec::new();
        let mut durations: [Vec<u64>; PHASES] = Default::default();
        let mut detailed = Vec::new();
        let mut distance = 0;
        for row in rows {
            if row.phases == WirePhases::default() && row.address.is_none() {
                distance += 1;
                continue;
            }
            distances.push(distance);
            distance = 0;
            for (column, duration) in durations.iter_mut().zip(durations_of(row.phases)) {
                column.extend(duration.map(u64::from));
            }
            detailed.push(row);
        }
        if detailed.is_empty() {
            return None;
        }
        let distance_parameter = best_parameter(&distances);
        let phase_parameters = durations.map(|column| best_parameter(&column));
        let mut writer = RiceWriter::default();
        for (&distance, row) in distances.iter().zip(&detailed) {
            writer.rice(distance, distance_parameter);
            for (duration, parameter) in durations_of(row.phases).into_iter().zip(phase_parameters) {
                writer.bits(u64::from(duration.is_some()), 1);
                if let Some(duration) = duration {
                    writer.rice(u64::from(duration), parameter);
                }
            }
            write_address(&mut writer, row.address);
        }
        let [dns, connect, tls, first_byte, transfer] = phase_parameters;
        let parameters = [distance_parameter, dns, connect, tls, first_byte, transfer];
        let count = u16::try_from(detailed.len()).unwrap_or(u16::MAX);
        Some(Self { count, parameters, bits: writer.finish() })
    }

    /// Restores the details of the rows; returns `None` if this is not in the form that [`Self::pack`]
    /// produces.
    pub(super) fn unpack(&self, rows: &mut [PlainRow]) -> Option<()> {
        let [distance_parameter, phase_parameters @ ..] = self.parameters;
        let mut reader = RiceReader::new(&self.bits);
        let mut rest = rows.iter_mut();
        for _ in 0..self.count {
            let distance = usize::try_from(reader.rice(distance_parameter)?).ok()?;
            let row = rest.nth(distance)?;
            let mut durations = [None; PHASES];
            for (duration, parameter) in durations.iter_mut().zip(phase_parameters) {
                if reader.bits(1)? == 1 {
                    *duration = Some(u32::try_from(reader.rice(parameter)?).ok()?);
                }
            }
            let [dns_us, connect_us, tls_us, first_byte_us, transfer_us] = durations;
            row.phases = WirePhases { dns_us, connect_us, tls_us, first_byte_us, transfer_us };
            row.address = read_address(&mut reader)?;
        }
        reader.is_finished().then_some(())
    }
}

fn durations_of(phases: WirePhases) -> [Option<u32>; PHASES] {
    [phases.dns_us, phases.connect_us, phases.tls_us, phases.first_byte_us, phases.transfer_us]
}

/// Writes one bit for presence, one for the family, then the address, most significant bytes first.
fn write_address(writer: &mut RiceWriter, address: Option<IpAddr>) {
    writer.bits(u64::from(address.is_some()), 1);
    match address {
        None => {}
        Some(IpAddr::V4(v4)) => {
            writer.bits(0, 1);
            writer.bits(u64::from(v4.to_bits()), 32);
        }
        Some(IpAddr::V6(v6)) => {
            writer.bits(1, 1);
            for half in halves(v6.to_bits()) {
                writer.bits(half, 64);
            }
        }
    }
}

fn read_address(reader: &mut RiceReader<'_>) -> Option<Option<IpAddr>> {
    if reader.bits(1)? == 0 {
        return Some(None);
    }
    let is_v6 = reader.bits(1)? == 1;
    Some(Some(if is_v6 {
        let (high, low) = (reader.bits(64)?, reader.bits(64)?);
        IpAddr::V6(((u128::from(high) << 64) | u128::from(low)).into())
    } else {
        IpAddr::V4(u32::try_from(reader.bits(32)?).ok()?.into())
    }))
}

fn halves(bits: u128) -> [u64; 2] {
    let half = |bits: u128| u64::try_from(bits & u128::from(u64::MAX)).unwrap_or_default();
    [half(bits >> 64), half(bits)]
}
