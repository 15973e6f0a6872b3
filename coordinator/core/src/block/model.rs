//! Prediction model of a block: encoder and decoder share it, so only deviations cost bits.

use smallvec::SmallVec;

use crate::observation::RoundOutcome;
use crate::time::Timestamp;
use crate::vantage::VantageNo;

use super::BlockReading;

/// Number of readings after which a vantage's mean stops adapting faster.
const MAX_WEIGHT: u8 = 12;
/// Fractional bits of the mean: it is stored in 1/16 milliseconds.
const MEAN_BITS: u32 = 4;

/// State shared by encoder and decoder.
#[derive(Debug, Clone)]
pub(super) struct BlockModel {
    /// Milliseconds between two rounds, at least 1.
    pub(super) interval: i64,
    /// Round of the newest reading.
    pub(super) round: u64,
    /// Time at which it was due.
    pub(super) due: Timestamp,
    /// Its outcome.
    pub(super) outcome: RoundOutcome,
    /// Set if it had a latency.
    pub(super) has_latency: bool,
    /// Its vantage, as an index into `vantages`, of which there are never more than readings.
    vantage: u16,
    /// Most blocks have a single vantage.
    vantages: SmallVec<[VantageModel; 1]>,
}

impl Default for BlockModel {
    fn default() -> Self {
        Self {
            interval: 1,
            round: 0,
            due: Timestamp::from_millis(0),
            outcome: RoundOutcome::Passed,
            has_latency: true,
            vantage: 0,
            vantages: SmallVec::new(),
        }
    }
}

impl BlockModel {
    /// Time at which a round is due in the current schedule; none if that is out of range.
    pub(super) fn due_of(&self, round: u64) -> Option<Timestamp> {
        let rounds = i128::from(round) - i128::from(self.round);
        let due = i128::from(self.due.as_millis()) + rounds.checked_mul(i128::from(self.interval))?;
        i64::try_from(due).ok().map(Timestamp::from_millis)
    }

    /// Index of the vantage whose turn is next, by the turns seen so far; none before the first reading.
    pub(super) fn next_vantage(&self) -> Option<usize> {
        let present = usize::from(self.vantage);
        let place = self.vantages.get(present)?;
        match place.successor {
            Some(next) => Some(usize::from(next)),
            None if present + 1 < self.vantages.len() => Some(present + 1),
            None => Some(0),
        }
    }

    /// Number of the vantage at an index.
    pub(super) fn vantage_no(&self, index: usize) -> Option<VantageNo> {
        self.vantages.get(index).map(|place| place.no)
    }

    /// Vantage of the current reading.
    pub(super) fn current_vantage(&self) -> Option<VantageNo> {
        self.vantage_no(usize::from(self.vantage))
    }

    /// Index of a vantage that was seen before.
    pub(super) fn index_of(&self, no: VantageNo) -> Option<usize> {
        self.vantages.iter().position(|place| place.no == no)
    }

    /// Makes `index` the vantage of the current reading, as predicted.
    pub(super) fn turn_to(&mut self, index: usize) {
        self.vantage = u16::try_from(index).unwrap_or(u16::MAX);
    }

    /// Makes `index` the vantage of the current reading, and predicts the same turn next time.
    pub(super) fn learn_turn_to(&mut self, index: usize) {
        let next = u16::try_from(index).ok();
        if let Some(place) = self.vantages.get_mut(usize::from(self.vantage)) {
            place.successor = next;
        }
        self.turn_to(index);
    }

    /// Adds a new vantage and makes it the one of the current reading.
    pub(super) fn add_vantage(&mut self, no: VantageNo) {
        self.vantages.reserve_exact(1);
        self.vantages.push(VantageModel { no, successor: None, seen: 0, mean: 0, spread: 0 });
        self.turn_to(self.vantages.len() - 1);
    }

    /// Latency model of the vantage of the current reading.
    pub(super) fn current_model(&mut self) -> Option<&mut VantageModel> {
        self.vantages.get_mut(usize::from(self.vantage))
    }

    /// Milliseconds between two rounds, as estimated from this reading and the previous one.
    pub(super) fn guess_interval(&self, sample: &BlockReading) -> i64 {
        let rounds = i128::from(sample.round) - i128::from(self.round);
        let time = i128::from(sample.due.as_millis()) - i128::from(self.due.as_millis());
        if !self.vantages.is_empty() && rounds > 0 && time > 0 && time % rounds == 0 {
            return i64::try_from(time / rounds).unwrap_or(1);
        }
        // Rounds are counted from the epoch, so a single one almost determines the interval; a whole second is
        // likelier than its neighbours.
        let due = i128::from(sample.due.as_millis());
        let round = i128::from(sample.round);
        let longest = if round > 0 { due / round } else { due };
        let seconds = longest / 1000 * 1000;
        let guess = if seconds > 0 && seconds * (round + 1) > due { seconds } else { longest };
        i64::try_from(guess).unwrap_or(1).max(1)
    }
}

/// Latency model of one vantage: a running mean, and the usual deviation from it.
#[derive(Debug, Clone)]
pub(super) struct VantageModel {
    no: VantageNo,
    /// Index of the vantage whose turn came after this one's.
    successor: Option<u16>,
    /// Number of latencies seen, up to [`MAX_WEIGHT`].
    seen: u8,
    /// Mean latency, in fractions of a millisecond (see [`MEAN_BITS`]).
    mean: i64,
    /// Mean of the zigzag differences, in the same fractions.
    spread: i64,
}

impl VantageModel {
    /// Predicted next latency in milliseconds; none before the first.
    pub(super) fn expected(&self) -> Option<i64> {
        (self.seen > 0).then_some((self.mean + (1 << (MEAN_BITS - 1))) >> MEAN_BITS)
    }

    /// Order of the Rice code that suits the differences seen so far.
    pub(super) fn rice_order(&self) -> u32 {
        // A Rice code of that order is within a few hundredths of a bit of the best for differences of this mean.
        let mean = (self.spread >> MEAN_BITS).clamp(0, 1 << 24) + 1;
        63 - (mean as u64).leading_zeros()
    }

    /// Updates the model with a latency and its zigzag difference from the prediction.
    pub(super) fn update(&mut self, latency: i64, zigzag: i64) {
        if self.seen == 0 {
            self.mean = latency << MEAN_BITS;
            // Assume jitter of some percent at first: an eighth of the value, since zigzag doubles.
            self.spread = self.mean / 8;
            self.seen = 1;
            return;
        }
        self.seen = (self.seen + 1).min(MAX_WEIGHT);
        let weight = i64::from(self.seen);
        // A spike must not shift the mean, nor more than double the spread.
        let reach = 2 * self.spread.max(1 << MEAN_BITS);
        let off = ((latency << MEAN_BITS) - self.mean).clamp(-reach, reach);
        self.mean += off / weight;
        let zigzag = (zigzag << MEAN_BITS).min(2 * reach);
        self.spread += (zigzag - self.spread) / i64::from(MAX_WEIGHT);
    }
}
