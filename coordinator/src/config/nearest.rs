//! The known name that lies nearest to one that is not known.

/// The nearest of `known` and how many letters have to be changed, added or taken out; the first of equals.
pub(super) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<(&'a str, usize)> {
    known.map(|candidate| (candidate, distance(name, candidate))).min_by_key(|(_, distance)| *distance)
}

/// Levenshtein's distance, by rows.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut above: Vec<usize> = (0..=to.len()).collect();
    for (line, letter) in from.chars().enumerate() {
        let mut row = Vec::with_capacity(above.len());
        let mut left = line + 1;
        row.push(left);
        for ((wanted, diagonal), up) in to.iter().zip(&above).zip(above.iter().skip(1)) {
            let replaced = diagonal + usize::from(*wanted != letter);
            left = replaced.min(left + 1).min(up + 1);
            row.push(left);
        }
        above = row;
    }
    above.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_the_one_with_the_fewest_changed_letters() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(nearest("lissten", ["data", "listen", "log"].into_iter()), Some(("listen", 1)));
        assert_eq!(nearest("x", std::iter::empty()), None);
    }
}
