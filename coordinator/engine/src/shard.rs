//! Shards: a driver owns one shard of the monitors; a coordinator that outgrows one CPU core runs several.

/// The monitors whose slot modulo `count` is `index`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    index: u32,
    count: u32,
}

impl Shard {
    /// The only shard, with all monitors.
    pub const WHOLE: Self = Self { index: 0, count: 1 };

    /// Returns part `index` of `count`, counted from 0; `None` if there is no such part.
    pub const fn new(index: u32, count: u32) -> Option<Self> {
        if index < count { Some(Self { index, count }) } else { None }
    }

    /// Returns true if the monitor with that slot is in this shard.
    pub const fn contains(self, slot: u32) -> bool {
        slot % self.count == self.index
    }

    /// Returns the name of this shard's cursor: `name` itself if this is the only shard.
    pub fn cursor_name(self, name: &str) -> String {
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
            assert_eq!(shards.iter().filter(|shard| shard.contains(slot)).count(), 1, "{slot}");
            assert!(Shard::WHOLE.contains(slot));
        }
        assert_eq!(Shard::new(3, 3), None);
        assert_eq!(Shard::new(0, 0), None);
    }
}
