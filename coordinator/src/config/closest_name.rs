//! The known name closest to an unknown one.

use strsim::levenshtein;

/// Returns the closest of `candidates` and its edit distance; the first of several.
pub(super) fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<(&'a str, usize)> {
    candidates.map(|candidate| (candidate, levenshtein(name, candidate))).min_by_key(|(_, distance)| *distance)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_the_one_with_the_fewest_changed_letters() {
        assert_eq!(nearest("lissten", ["data", "listen", "log"].into_iter()), Some(("listen", 1)));
        assert_eq!(nearest("x", std::iter::empty()), None);
    }
}
