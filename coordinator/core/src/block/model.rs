//! What a block expects of its next reading: coder and decoder hold the same one, and only surprises cost bits.

use smallvec::SmallVec;

use crate::observation::Word;
use crate::place::PlaceNo;
use crate::time::Timestamp;

use super::Sample;

/// Readings after which a place's mean stops moving faster.
const SETTLED: u8 = 12;
/// The mean is kept in so many parts of a millisecond, as a power of two.
const MEAN_BITS: u32 = 4;

/// The state that coder and decoder share.
#[derive(Debug, Clone)]
pub(super) struct Model {
    /// Milliseconds between two rounds, at least 1.
    pub(super) interval: i64,
    /// The newest reading's round.
    pub(super) round: u64,
    /// When it was due.
    pub(super) due: Timestamp,
    /// Its word.
    pub(super) word: Word,
    /// Whether it had a latency.
    pub(super) timed: bool,
    /// Its place, by index into `places`: a block holds fewer readings than that counts.
    place: u16,
    /// Most tails know one place.
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
    /// When a round is due by the present schedule; none where that can't be said.
    pub(super) fn due_of(&self, round: u64) -> Option<Timestamp> {
        let rounds = i128::from(round) - i128::from(self.round);
        let due = i128::from(self.due.as_millis()) + rounds.checked_mul(i128::from(self.interval))?;
        i64::try_from(due).ok().map(Timestamp::from_millis)
    }

    /// The index of the place whose turn is next, as far as turns were seen; none before the first reading.
    pub(super) fn next_place(&self) -> Option<usize> {
        let present = usize::from(self.place);
        let place = self.places.get(present)?;
        match place.successor {
            Some(next) => Some(usize::from(next)),
            None if present + 1 < self.places.len() => Some(present + 1),
            None => Some(0),
        }
    }

    /// The number of the place at an index.
    pub(super) fn place_no(&self, index: usize) -> Option<PlaceNo> {
        self.places.get(index).map(|place| place.no)
    }

    /// The place of the reading at hand.
    pub(super) fn present(&self) -> Option<PlaceNo> {
        self.place_no(usize::from(self.place))
    }

    /// The index of a place that was seen before.
    pub(super) fn index_of(&self, no: PlaceNo) -> Option<usize> {
        self.places.iter().position(|place| place.no == no)
    }

    /// Makes `index` the place of the reading at hand, as predicted.
    pub(super) fn turn_to(&mut self, index: usize) {
        self.place = u16::try_from(index).unwrap_or(u16::MAX);
    }

    /// Makes `index` the place of the reading at hand, and expects the same turn next time.
    pub(super) fn learn_turn_to(&mut self, index: usize) {
        let next = u16::try_from(index).ok();
        if let Some(place) = self.places.get_mut(usize::from(self.place)) {
            place.successor = next;
        }
        self.turn_to(index);
    }

    /// Adds a place that was not seen before, and makes it the one of the reading at hand.
    pub(super) fn add_place(&mut self, no: PlaceNo) {
        self.places.reserve_exact(1);
        self.places.push(PlaceModel { no, successor: None, seen: 0, mean: 0, spread: 0 });
        self.turn_to(self.places.len() - 1);
    }

    /// The latencies of the place of the reading at hand.
    pub(super) fn latencies(&mut self) -> Option<&mut PlaceModel> {
        self.places.get_mut(usize::from(self.place))
    }

    /// Milliseconds between two rounds, as far as one reading and the one before it tell.
    pub(super) fn guess_interval(&self, sample: &Sample) -> i64 {
        let rounds = i128::from(sample.round) - i128::from(self.round);
        let time = i128::from(sample.due.as_millis()) - i128::from(self.due.as_millis());
        if !self.places.is_empty() && rounds > 0 && time > 0 && time % rounds == 0 {
            return i64::try_from(time / rounds).unwrap_or(1);
        }
        // Rounds are counted from the epoch, so that one of them almost fixes the interval; a whole second is likelier
        // than its neighbours.
        let due = i128::from(sample.due.as_millis());
        let round = i128::from(sample.round);
        let longest = if round > 0 { due / round } else { due };
        let seconds = longest / 1000 * 1000;
        let guess = if seconds > 0 && seconds * (round + 1) > due { seconds } else { longest };
        i64::try_from(guess).unwrap_or(1).max(1)
    }
}

/// One place's latencies: a running mean, and how far off it a reading usually is.
#[derive(Debug, Clone)]
pub(super) struct PlaceModel {
    no: PlaceNo,
    /// The place whose turn came after this one's.
    successor: Option<u16>,
    /// Latencies seen, up to [`SETTLED`].
    seen: u8,
    /// In parts of a millisecond (see [`MEAN_BITS`]).
    mean: i64,
    /// Mean of the zigzag differences, in the same parts.
    spread: i64,
}

impl PlaceModel {
    /// What the next latency is expected to be, in milliseconds; none before the first.
    pub(super) fn expected(&self) -> Option<i64> {
        (self.seen > 0).then_some((self.mean + (1 << (MEAN_BITS - 1))) >> MEAN_BITS)
    }

    /// Order of the Rice code that suits the differences seen so far.
    pub(super) fn order(&self) -> u32 {
        // A Rice code of that order is within a few hundredths of a bit of the best for differences of this mean.
        let mean = (self.spread >> MEAN_BITS).clamp(0, 1 << 24) + 1;
        63 - (mean as u64).leading_zeros()
    }

    /// Takes in a latency and its zigzag difference from what was expected.
    pub(super) fn learn(&mut self, latency: i64, zigzag: i64) {
        if self.seen == 0 {
            self.mean = latency << MEAN_BITS;
            // Jitter of some percent, until more is known: an eighth of the value, since zigzag doubles.
            self.spread = self.mean / 8;
            self.seen = 1;
            return;
        }
        self.seen = (self.seen + 1).min(SETTLED);
        let weight = i64::from(self.seen);
        // A spike must not drag the mean along, nor the spread by more than its double.
        let reach = 2 * self.spread.max(1 << MEAN_BITS);
        let off = ((latency << MEAN_BITS) - self.mean).clamp(-reach, reach);
        self.mean += off / weight;
        let zigzag = (zigzag << MEAN_BITS).min(2 * reach);
        self.spread += (zigzag - self.spread) / i64::from(SETTLED);
    }
}
