//! A part of the monitors: one driver owns one, and a coordinator that outgrows a core runs several.

/// The monitors whose dense number leaves `index` when divided by `count`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    index: u32,
    count: u32,
}

impl Shard {
    /// All monitors: the only shard.
    pub const WHOLE: Self = Self { index: 0, count: 1 };

    /// Part `index` of `count`, counted from 0. None where there is no such part.
    pub const fn new(index: u32, count: u32) -> Option<Self> {
        if index < count { Some(Self { index, count }) } else { None }
    }

    /// Whether the monitor with that dense number is in it.
    pub const fn holds(self, slot: u32) -> bool {
        slot % self.count == self.index
    }

    /// The name of a cursor of this shard's own: the plain one where it is the only.
    pub fn cursor(self, name: &str) -> String {
        if self.count == 1 { name.to_owned() } else { format!("{name}-{}-of-{}", self.index, self.count) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_monitor_is_in_exactly_one_shard() {
        let shards: Vec<Shard> = (0..3).filter_map(|index| Shard::new(index, 3)).collect();
        for slot in 0..100 {
            assert_eq!(shards.iter().filter(|shard| shard.holds(slot)).count(), 1, "{slot}");
            assert!(Shard::WHOLE.holds(slot));
        }
        assert_eq!(Shard::new(3, 3), None);
        assert_eq!(Shard::new(0, 0), None);
    }
}
