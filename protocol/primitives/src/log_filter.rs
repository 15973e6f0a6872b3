//! Log filters: a level, or a list of `target=level`, where a target is the beginning of a module's path.

use tracing::level_filters::LevelFilter;

/// Reads a filter such as `info` or `warn,parallax_mesh=debug` into pairs of target and level: the longest target that a
/// module's path begins with decides, and of two equal ones the later one. The level for all others has an empty target; without
/// it they are off. An empty filter lets errors pass.
///
/// Filters by span or field are refused: they would bring a regular expression engine into both programs.
///
/// # Errors
/// The rule that the text breaks.
pub fn parse(text: &str) -> Result<Vec<(String, LevelFilter)>, &'static str> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    let levels: Vec<_> = parts.map(target_and_level).collect::<Result<_, _>>()?;
    Ok(if levels.is_empty() { vec![(String::new(), LevelFilter::ERROR)] } else { levels })
}

fn target_and_level(part: &str) -> Result<(String, LevelFilter), &'static str> {
    match part.split_once('=') {
        None => Ok((String::new(), level(part)?)),
        Some((target, at)) if is_path(target.trim()) => Ok((target.trim().to_owned(), level(at.trim())?)),
        Some(_) => Err(RULE),
    }
}

const RULE: &str = "must be a level (error, warn, info, debug, trace) or a list of target=level";

fn level(text: &str) -> Result<LevelFilter, &'static str> {
    // An empty level would be read as `error`.
    if text.is_empty() { Err(RULE) } else { text.parse().map_err(|_| RULE) }
}

fn is_path(text: &str) -> bool {
    let is_part = |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | ':' | '-');
    !text.is_empty() && text.chars().all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_a_list_of_targets_with_levels() {
        let pair = |target: &str, level| (target.to_owned(), level);
        for (text, expected) in [
            ("info", vec![pair("", LevelFilter::INFO)]),
            ("", vec![pair("", LevelFilter::ERROR)]),
            ("off", vec![pair("", LevelFilter::OFF)]),
            ("parallax_mesh=debug", vec![pair("parallax_mesh", LevelFilter::DEBUG)]),
            (
                " warn, parallax=info ,h2::proto = off,",
                vec![
                    pair("", LevelFilter::WARN),
                    pair("parallax", LevelFilter::INFO),
                    pair("h2::proto", LevelFilter::OFF),
                ],
            ),
        ] {
            assert_eq!(parse(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn other_filters_are_refused() {
        for text in ["info,=", "=info", "wran", "a=", "a=b=c", "a[span]=info", "a[{field=1}]=info", "info;warn"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
