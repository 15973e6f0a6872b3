//! The length of an incident, and what is left of it in a document that holds many.

use super::{Incident, Update};

/// Bytes that the open incidents and unfinished windows of a page may have together, by [`Incident::bytes`].
pub const MAX_OPEN_BYTES: usize = 2 << 20;
/// Bytes of an update beside its text, and of an affected monitor, in a document.
const UPDATE: usize = 120;
const AFFECTED: usize = 100;

impl Incident {
    /// Bytes that it takes in a document, about.
    pub fn bytes(&self) -> usize {
        let updates = self.updates.iter().map(|update| update.body.len() + UPDATE);
        let postmortem = self.postmortem.as_ref().map_or(0, String::len);
        self.title.len() + postmortem + updates.sum::<usize>() + self.affected.len() * AFFECTED
    }

    /// Its newest updates, oldest first: so many at most, with texts of so many bytes at most, and one whatever its length.
    pub fn newest(&self, most: usize, bytes: usize) -> &[Update] {
        let (mut kept, mut sum) = (0, 0_usize);
        for update in self.updates.iter().rev().take(most) {
            sum = sum.saturating_add(update.body.len());
            if sum > bytes && kept > 0 {
                break;
            }
            kept += 1;
        }
        self.updates.get(self.updates.len() - kept..).unwrap_or_default()
    }

    /// Leaves those of [`Incident::newest`], and gives how many were left out.
    pub fn keep_newest(&mut self, most: usize, bytes: usize) -> usize {
        let more = self.updates.len() - self.newest(most, bytes).len();
        self.updates.drain(..more);
        more
    }
}

#[cfg(test)]
mod tests {
    use super::super::edit::tests::incident;
    use super::*;

    #[test]
    fn the_newest_updates_stay_within_both_bounds_and_one_whatever_its_length() {
        let said = incident().updates[0].clone();
        let of = |lengths: &[usize]| Incident {
            updates: lengths.iter().map(|n| Update { body: "x".repeat(*n), ..said.clone() }).collect(),
            ..incident()
        };
        for (most, bytes, left) in [
            (10, 100, vec![1, 2, 3]),
            (2, 100, vec![2, 3]),
            (10, 5, vec![2, 3]),
            (10, 4, vec![3]),
            (10, 0, vec![3]),
        ] {
            let mut incident = of(&[1, 2, 3]);
            let more = incident.keep_newest(most, bytes);
            let lengths: Vec<usize> = incident.updates.iter().map(|update| update.body.len()).collect();
            assert_eq!((more, lengths), (3 - left.len(), left));
        }
        assert_eq!(of(&[]).keep_newest(10, 10), 0);
        assert_eq!(of(&[500]).bytes() - of(&[]).bytes(), 620);
    }
}
