//! Size of incidents, and their reduction in documents that hold many.

use super::{Incident, IncidentUpdate};

/// Maximum size of a page's open incidents and unfinished windows together, by [`Incident::bytes`].
pub const MAX_OPEN_BYTES: usize = 2 << 20;
/// Overhead of an update without its text, and of an affected monitor, in bytes of a document.
const UPDATE: usize = 120;
const AFFECTED: usize = 100;

impl Incident {
    /// Approximate size in a document, in bytes.
    pub fn bytes(&self) -> usize {
        let updates = self.updates.iter().map(|update| update.body.len() + UPDATE);
        let postmortem = self.postmortem.as_ref().map_or(0, String::len);
        self.title.len() + postmortem + updates.sum::<usize>() + self.affected.len() * AFFECTED
    }

    /// Its newest updates, oldest first: at most `most`, with at most `bytes` of text, but always one.
    pub fn newest_updates(&self, most: usize, bytes: usize) -> &[IncidentUpdate] {
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

    /// Keeps only those of [`Incident::newest_updates`], and returns the number removed.
    pub fn truncate_updates(&mut self, most: usize, bytes: usize) -> usize {
        let more = self.updates.len() - self.newest_updates(most, bytes).len();
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
        let update = incident().updates[0].clone();
        let of = |lengths: &[usize]| Incident {
            updates: lengths.iter().map(|n| IncidentUpdate { body: "x".repeat(*n), ..update.clone() }).collect(),
            ..incident()
        };
        for (most, bytes, left) in
            [(10, 100, vec![1, 2, 3]), (2, 100, vec![2, 3]), (10, 5, vec![2, 3]), (10, 4, vec![3]), (10, 0, vec![3])]
        {
            let mut incident = of(&[1, 2, 3]);
            let more = incident.truncate_updates(most, bytes);
            let lengths: Vec<usize> = incident.updates.iter().map(|update| update.body.len()).collect();
            assert_eq!((more, lengths), (3 - left.len(), left));
        }
        assert_eq!(of(&[]).truncate_updates(10, 10), 0);
        assert_eq!(of(&[500]).bytes() - of(&[]).bytes(), 620);
    }
}
