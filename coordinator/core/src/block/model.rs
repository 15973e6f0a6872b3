//! Prediction model of a block: encoder and decoder share it, so only deviations cost bits.

use smallvec::SmallVec;

use crate::observation::Word;
use crate::place::PlaceNo;
use crate::time::Timestamp;

use super::Sample;

/// Number of readings after which a vantage's mean stops adapting faster.
const SETTLED: u8 = 12;
/// Fractional bits of the mean: it is stored in 1/16 milliseconds.
const MEAN_BITS: u32 = 4;

/// State shared by encoder and decoder.
#[derive(Debug, Clone)]
pub(super) struct Model {
    /// Milliseconds between two rounds, at least 1.
    pub(super) interval: i64,
    /// Round of the newest reading.
    pub(super) round: u64,
    /// Time at which it was due.
    pub(super) due: Timestamp,
    /// Its outcome.
    pub(super) word: Word,
    /// Set if it had a latency.
    pub(super) timed: bool,
    /// Its vantage, as an index into `places`, of which there are never more than readings.
    place: u16,
    /// Most blocks have a single vantage.
    places: SmallVec<[PlaceModel; 1]>,
}

impl Default for Model {
    fn default() -> Self {
        Self {
            interval: 1,
            round: 0,
            due: Timestamp::from_millis(0),
            word: Word::Passed,
            timed: true,
            place: 0,
            places: SmallVec::new(),
        }
    }
}

impl Model {
    /// Time at which a round is due in the current schedule; none if that is out of range.
    pub(super) fn due_of(&self, round: u64) -> Option<Timestamp> {
        let rounds = i128::from(round) - i128::from(self.round);
        let due = i128::from(self.due.as_millis()) + rounds.checked_mul(i128::from(self.interval))?;
        i64::try_from(due).ok().map(Timestamp::from_millis)
    }

    /// Index of the vantage whose turn is next, by the turns seen so far; none before the first reading.
    pub(super) fn next_place(&self) -> Option<usize> {
        let present = usize::from(self.place);
        let place = self.places.get(present)?;
        match place.successor {
            Some(next) => Some(usize::from(next)),
            None if present + 1 < self.places.len() => Some(present + 1),
            None => Some(0),
        }
    }

    /// Number of the vantage at an index.
    pub(super) fn place_no(&self, index: usize) -> Option<PlaceNo> {
        self.places.get(index).map(|place| place.no)
    }

    /// Vantage of the current reading.
    pub(super) fn present(&self) -> Option<PlaceNo> {
        self.place_no(usize::from(self.place))
    }

    /// Index of a vantage that was seen before.
    pub(super) fn index_of(&self, no: PlaceNo) -> Option<usize> {
        self.places.iter().position(|place| place.no == no)
    }

    /// Makes `index` the vantage of the current reading, as predicted.
    pub(super) fn turn_to(&mut self, index: usize) {
        self.place = u16::try_from(index).unwrap_or(u16::MAX);
    }

    /// Makes `index` the vantage of the current reading, and predicts the same turn next time.
    pub(super) fn learn_turn_to(&mut self, index: usize) {
        let next = u16::try_from(index).ok();
        if let Some(place) = self.places.get_mut(usize::from(self.place)) {
            place.successor = next;
        }
        self.turn_to(index);
    }

    /// Adds a new vantage and makes it the one of the current reading.
    pub(super) fn add_place(&mut self, no: PlaceNo) {
        self.places.reserve_exact(1);
        self.places.push(PlaceModel { no, successor: None, seen: 0, mean: 0, spread: 0 });
        self.turn_to(self.places.len() - 1);
    }

    /// Latency model of the vantage of the current reading.
    pub(super) fn latencies(&mut self) -> Option<&mut PlaceModel> {
        self.places.get_mut(usize::from(self.place))
    }

    /// Milliseconds between two rounds, as estimated from this reading and the previous one.
    pub(super) fn guess_interval(&self, sample: &Sample) -> i64 {
        let rounds = i128::from(sample.round) - i128::from(self.round);
        let time = i128::from(sample.due.as_millis()) - i128::from(self.due.as_millis());
        if !self.places.is_empty() && rounds > 0 && time > 0 && time % rounds == 0 {
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
pub(super) struct PlaceModel {
    no: PlaceNo,
    /// Index of the vantage whose turn came after this one's.
    successor: Option<u16>,
    /// Number of latencies seen, up to [`SETTLED`].
    seen: u8,
    /// Mean latency, in fractions of a millisecond (see [`MEAN_BITS`]).
    mean: i64,
    /// Mean of the zigzag differences, in the same fractions.
    spread: i64,
}

impl PlaceModel {
    /// Predicted next latency in milliseconds; none before the first.
    pub(super) fn expected(&self) -> Option<i64> {
        (self.seen > 0).then_some((self.mean + (1 << (MEAN_BITS - 1))) >> MEAN_BITS)
    }

    /// Order of the Rice code that suits the differences seen so far.
    pub(super) fn order(&self) -> u32 {
        // A Rice code of that order is within a few hundredths of a bit of the best for differences of this mean.
        let mean = (self.spread >> MEAN_BITS).clamp(0, 1 << 24) + 1;
        63 - (mean as u64).leading_zeros()
    }

    /// Updates the model with a latency and its zigzag difference from the prediction.
    pub(super) fn learn(&mut self, latency: i64, zigzag: i64) {
        if self.seen == 0 {
            self.mean = latency << MEAN_BITS;
            // Assume jitter of some percent at first: an eighth of the value, since zigzag doubles.
            self.spread = self.mean / 8;
            self.seen = 1;
            return;
        }
        self.seen = (self.seen + 1).min(SETTLED);
        let weight = i64::from(self.seen);
        // A spike must not shift the mean, nor more than double the spread.
        let reach = 2 * self.spread.max(1 << MEAN_BITS);
        let off = ((latency << MEAN_BITS) - self.mean).clamp(-reach, reach);
        self.mean += off / weight;
        let zigzag = (zigzag << MEAN_BITS).min(2 * reach);
        self.spread += (zigzag - self.spread) / i64::from(SETTLED);
    }
}
