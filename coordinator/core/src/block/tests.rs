//! Tests of blocks: they round-trip, stay small, and survive damage.

use proptest::prelude::*;

use super::*;
use crate::time::HOUR;

/// Deterministic pseudo-random numbers (splitmix64).
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in 0 to 1, excluding 1.
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * (1.0 - self.unit()).ln()).sqrt() * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// Log-normal jitter of 8 % around a base, and a spike of up to ten times once in 200.
    fn latency(&mut self, base: f64) -> u32 {
        let spike = if self.unit() < 0.005 { 1.0 + 9.0 * self.unit() } else { 1.0 };
        (base * (0.08 * self.normal()).exp() * spike).round() as u32
    }
}

/// One hour of a monitor in a region, checked every `interval` ms by the vantages in turn.
fn hour_of(rng: &mut Rng, hour: i64, interval: i64, bases: &[f64]) -> Vec<BlockReading> {
    let offset = (rng.unit() * interval as f64) as i64;
    let first = (hour * HOUR - offset + interval - 1).div_euclid(interval);
    (first..)
        .map(|round| (round as u64, offset + round * interval))
        .take_while(|(_, due)| due.div_euclid(HOUR) == hour)
        .map(|(round, due)| {
            let turn = (round % bases.len() as u64) as usize;
            let failed = rng.unit() < 0.001;
            BlockReading {
                vantage: VantageNo(turn as u16 * 7 + 3),
                round,
                due: Timestamp::from_millis(due),
                outcome: if failed { RoundOutcome::Failed } else { RoundOutcome::Passed },
                latency_ms: (!failed).then(|| rng.latency(bases[turn])),
            }
        })
        .collect()
}

fn tail_of(hour: i64, samples: &[BlockReading]) -> OpenBlock {
    let mut tail = OpenBlock::new(hour);
    for sample in samples {
        assert_eq!(tail.push(sample), Ok(true));
    }
    tail
}

/// Mean bytes per reading over many hours of many series.
fn mean_bytes(interval: i64, places: usize) -> f64 {
    let mut rng = Rng(0x5eed);
    let (mut bytes, mut readings) = (0, 0);
    for _ in 0..200 {
        let bases: Vec<f64> = (0..places).map(|_| 20.0 + 380.0 * rng.unit()).collect();
        for hour in 498_828..498_834 {
            let samples = hour_of(&mut rng, hour, interval, &bases);
            let block = tail_of(hour, &samples).seal();
            assert_eq!(decode(hour, &block).as_deref(), Ok(samples.as_slice()));
            bytes += block.len();
            readings += samples.len();
        }
    }
    bytes as f64 / readings as f64
}

#[test]
fn a_reading_costs_at_most_a_byte_and_a_tenth() {
    for (interval, places, goal) in
        [(60_000, 1, 1.1), (60_000, 2, 1.1), (60_000, 3, 1.1), (30_000, 3, 1.0), (300_000, 2, 2.5)]
    {
        let mean = mean_bytes(interval, places);
        println!("{interval} ms, {places} places: {mean:.3} bytes a reading");
        assert!(mean <= goal, "{interval} ms, {places} places: {mean:.3} bytes a reading");
    }
}

#[test]
fn an_hour_of_outage_costs_next_to_nothing() {
    let mut rng = Rng(7);
    let mut samples = hour_of(&mut rng, 498_828, 60_000, &[100.0, 30.0]);
    for sample in &mut samples {
        (sample.outcome, sample.latency_ms) = (RoundOutcome::Failed, None);
    }
    assert!(tail_of(498_828, &samples).seal().len() < 20);
}

#[test]
fn late_readings_are_sorted_in_and_duplicates_of_a_round_are_dropped() {
    let samples = hour_of(&mut Rng(1), 498_828, 60_000, &[80.0, 200.0]);
    let mut tail = OpenBlock::new(498_828);
    for sample in samples.iter().rev().chain(&samples) {
        let again = BlockReading { outcome: RoundOutcome::Failed, latency_ms: None, ..*sample };
        tail.push(sample).unwrap();
        assert_eq!(tail.push(&again), Ok(false));
    }
    assert_eq!(tail.len(), samples.len());
    assert_eq!(tail.readings(), samples);
    assert_eq!(tail.seal(), tail_of(498_828, &samples).seal());
}

#[test]
fn an_interval_that_changes_within_the_hour_is_followed() {
    let mut rng = Rng(2);
    let slow = hour_of(&mut rng, 498_828, 60_000, &[80.0]);
    let fast = hour_of(&mut rng, 498_828, 30_000, &[80.0]);
    let mut samples = slow[..20].to_vec();
    samples.extend_from_slice(&fast[60..]);
    let block = tail_of(498_828, &samples).seal();
    assert_eq!(decode(498_828, &block), Ok(samples.clone()));
    assert!(block.len() < samples.len() + 30);
}

#[test]
fn readings_of_another_hour_and_too_many_are_refused() {
    let sample = BlockReading {
        vantage: VantageNo(1),
        round: 1,
        due: Timestamp::from_millis(HOUR),
        outcome: RoundOutcome::Passed,
        latency_ms: Some(1),
    };
    let mut tail = OpenBlock::new(0);
    assert_eq!(tail.push(&sample), Err(BlockError::OtherHour));
    for round in 0..MAX_READINGS as u64 {
        tail.push(&BlockReading { round, due: Timestamp::from_millis(round as i64), ..sample }).unwrap();
    }
    let more = BlockReading { round: u64::MAX, due: Timestamp::from_millis(HOUR - 1), ..sample };
    assert_eq!(tail.push(&more), Err(BlockError::Full));
    assert_eq!(OpenBlock::reopen(0, &tail.seal()).unwrap().len(), MAX_READINGS);
}

#[test]
fn an_empty_block_is_a_block() {
    assert_eq!(decode(5, &OpenBlock::new(5).seal()), Ok(Vec::new()));
    assert_eq!(decode(5, &[]), Err(BlockError::Truncated));
    assert_eq!(decode(5, &[9, 0, 0]), Err(BlockError::Format(9)));
}

#[test]
fn the_first_bytes_of_the_format_are_frozen() {
    let samples = hour_of(&mut Rng(3), 498_828, 600_000, &[80.0, 95.0]);
    let hex: String = tail_of(498_828, &samples).seal().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, "0106079c28ac79420c558a046de39001");
}

fn any_sample() -> impl Strategy<Value = BlockReading> {
    let outcome = prop_oneof![
        8 => Just(RoundOutcome::Passed),
        1 => Just(RoundOutcome::Failed),
        1 => Just(RoundOutcome::Disputed),
        1 => Just(RoundOutcome::Unconfirmed),
        1 => Just(RoundOutcome::Inconclusive),
    ];
    let round = prop_oneof![4 => 0_u64..200, 1 => any::<u64>()];
    let latency = prop_oneof![4 => (50_u32..90).prop_map(Some), 1 => any::<Option<u32>>()];
    let vantage = prop_oneof![4 => 0_u16..3, 1 => any::<u16>()];
    (vantage, round, 0_i64..120, any::<bool>(), outcome, latency).prop_map(
        |(vantage, round, due, odd, outcome, latency_ms)| {
            let due = if odd { due * 17 } else { round.min(110) as i64 * 30_000 };
            BlockReading { vantage: VantageNo(vantage), round, due: Timestamp::from_millis(due), outcome, latency_ms }
        },
    )
}

proptest! {
    #[test]
    fn any_readings_in_any_order_come_back_by_round(samples in proptest::collection::vec(any_sample(), 0..120)) {
        let mut tail = OpenBlock::new(0);
        let mut expected = std::collections::BTreeMap::new();
        for sample in &samples {
            let new = tail.push(sample).unwrap();
            prop_assert_eq!(new, !expected.contains_key(&sample.round));
            expected.entry(sample.round).or_insert(*sample);
        }
        let expected: Vec<BlockReading> = expected.into_values().collect();
        prop_assert_eq!(&tail.readings(), &expected);
        prop_assert_eq!(&decode(0, &tail.seal()).unwrap(), &expected);
        prop_assert_eq!(OpenBlock::reopen(0, &tail.seal()).unwrap().seal(), tail.seal());
    }

    #[test]
    fn damage_is_an_error_or_other_readings_but_never_a_panic(
        seed in any::<u64>(),
        flips in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in any::<prop::sample::Index>(),
    ) {
        let samples = hour_of(&mut Rng(seed), 498_828, 60_000, &[40.0, 300.0]);
        let mut block = tail_of(498_828, &samples).seal();
        for (at, byte) in flips {
            let at = at.index(block.len());
            block[at] = byte;
        }
        block.truncate(cut.index(block.len() * 2));
        if let Ok(samples) = decode(498_828, &block) {
            prop_assert!(samples.len() <= MAX_READINGS);
        }
    }

    #[test]
    fn noise_is_never_a_panic(mut noise in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Some(first) = noise.first_mut() {
            *first = 1;
        }
        let _ = decode(0, &noise);
    }
}
