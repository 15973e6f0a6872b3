//! Icons of a screen: its sprite has the symbols that the screen uses and no others.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::LazyLock;

use crate::views::assets;

/// Place of the sprite in a rendered frame. Text from people can't contain it: `<` is escaped.
const PLACE: &str = "<!--icons-->";
/// Beginning of a use of an icon. Text from people can't contain it: quotes are escaped.
const USE: &str = "href=\"#i-";

/// Symbols by name, with their markup.
static SYMBOLS: LazyLock<BTreeMap<&str, &str>> = LazyLock::new(|| {
    let symbols = assets::ICONS.split("<symbol id=\"i-").skip(1);
    let named = symbols.filter_map(|after| {
        let (name, rest) = after.split_once('"')?;
        let (_, content) = rest.split_once('>')?;
        Some((name, content.split_once("</symbol>")?.0))
    });
    named.collect()
});

/// Inserts the sprite into a rendered screen. A document without a place for it stays as it is.
pub(super) fn insert_sprite(document: String) -> String {
    let Some((before, after)) = document.split_once(PLACE) else { return document };
    let names: BTreeSet<&str> =
        document.split(USE).skip(1).filter_map(|rest| rest.split_once('"')).map(|(name, _)| name).collect();
    #[cfg(test)]
    for name in &names {
        assert!(SYMBOLS.contains_key(name), "no icon {name}");
    }
    let mut sprite = String::with_capacity(document.len() + 4096);
    sprite.push_str(before);
    sprite.push_str("<svg class=\"sprite\" aria-hidden=\"true\" width=\"0\" height=\"0\">");
    for (name, content) in names.into_iter().filter_map(|name| SYMBOLS.get_key_value(name)) {
        // Writing to memory does not fail.
        let _ = write!(sprite, "<symbol id=\"i-{name}\" viewBox=\"0 0 16 16\">{content}</symbol>");
    }
    sprite.push_str("</svg>");
    sprite.push_str(after);
    sprite
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_screen_gets_the_icons_that_it_uses_once_each() {
        let document = "<body><!--icons--><use href=\"#i-bell\"/><use href=\"#i-up\"/><use href=\"#i-bell\"/>";
        let done = insert_sprite(document.to_owned());
        assert_eq!(done.matches("<symbol").count(), 2, "{done}");
        assert!(done.contains("<symbol id=\"i-bell\"") && done.contains("<symbol id=\"i-up\""), "{done}");
        assert!(!done.contains(PLACE));
    }

    #[test]
    fn every_icon_that_a_template_names_exists() {
        let templates = concat!(env!("CARGO_MANIFEST_DIR"), "/templates/dashboard");
        let mut folders = vec![std::path::PathBuf::from(templates)];
        let mut count = 0;
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let text = std::fs::read_to_string(&path).unwrap();
                for name in text.split("icon(\"").skip(1).filter_map(|rest| rest.split('"').next()) {
                    assert!(SYMBOLS.contains_key(name), "{}: no icon {name}", path.display());
                    count += 1;
                }
            }
        }
        assert!(count > 5, "{count}");
    }
}
