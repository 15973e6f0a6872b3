//! Rules that compilers do not check: imports, file length and header, leftovers, licences and banned crates.

mod architecture;
mod circles;
mod dashboard_addresses;
mod dependencies;
mod front_end;
mod imports;
mod language;
mod module_reader;
mod module_tree;
mod release_profile;
mod rendered_texts;
mod security;
mod source;
mod tables;
mod template_macros;

use source::{SourceFile, code, files, is_word};

/// Longest file, in lines.
const LINES: usize = 400;

/// Markers of unfinished work. Concatenated here, so that this file does not contain them.
const LEFTOVERS: &[&str] = &[concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];
const LEFTOVER_MACROS: &[&str] = &[concat!("to", "do!"), concat!("unimple", "mented!"), concat!("db", "g!")];

/// The old name of a monitor, and the files that may contain it.
const OLD_NAME: &str = concat!("check", "point");
const OLD_NAME_MAY: &[&str] = &["legacy.rs", "alert_payload.rs"];
/// Modules that use the word in its database sense: writing down open tails so that a start replays little.
const OTHER_SENSE: &[&str] = &["coordinator/store/src/", "coordinator/engine/src/history/"];

#[test]
fn every_file_is_short_and_opens_with_what_it_is_for() {
    let faults: Vec<String> = files(&[".rs"]).iter().flat_map(shape_faults).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn nothing_is_left_over_and_no_machine_is_named() {
    let endings = [".rs", ".toml", ".md", ".yml", ".service", ".Dockerfile", "run"];
    let faults: Vec<String> = files(&endings).iter().flat_map(leftover_faults).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn the_old_name_of_a_monitor_stays_behind_the_legacy_door() {
    let faults: Vec<String> = files(&[".rs"]).iter().flat_map(old_name_faults).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

fn shape_faults(source: &SourceFile) -> Vec<String> {
    let mut faults = Vec::new();
    let lines = source.text.lines().count();
    if lines > LINES {
        faults.push(format!("{}: {lines} lines, at most {LINES} allowed: split it by subject", source.path));
    }
    let first = source.text.lines().next().unwrap_or_default();
    if first.strip_prefix("//! ").is_none_or(|sentence| sentence.trim().is_empty()) {
        faults.push(format!("{}: does not start with a `//!` sentence that describes it", source.path));
    }
    faults
}

fn leftover_faults(source: &SourceFile) -> Vec<String> {
    let mut faults = Vec::new();
    let rust = source.path.ends_with(".rs");
    for (no, line) in source.text.lines().enumerate() {
        let at = |found: &str| format!("{}:{}: {found}", source.path, no + 1);
        for marker in LEFTOVERS {
            if has_word(line, marker) {
                faults.push(at(&format!("`{marker}` marks unfinished work: finish it, or file an issue")));
            }
        }
        if rust {
            for name in LEFTOVER_MACROS.iter().filter(|name| code(line).contains(**name)) {
                faults.push(at(&format!("`{name}` marks unfinished work")));
            }
        }
        for path in [concat!("/wo", "rk/"), concat!("/ho", "me/"), concat!("/ro", "ot/")] {
            if line.contains(path) {
                faults.push(at(&format!("`{path}` is a machine-specific path")));
            }
        }
    }
    faults
}

fn old_name_faults(source: &SourceFile) -> Vec<String> {
    let name = source.path.rsplit('/').next().unwrap_or_default();
    let legacy_tests = source.path.starts_with("tests/it/") && name == "legacy.rs";
    let door_tests = source.path.starts_with("coordinator/web/src/http/tests");
    let may = legacy_tests || door_tests || (OLD_NAME_MAY.contains(&name) && source.path.starts_with("coordinator/"));
    let may = may || OTHER_SENSE.iter().any(|room| source.path.starts_with(room));
    if may || !source.text.to_lowercase().contains(OLD_NAME) {
        return Vec::new();
    }
    vec![format!("{}: contains `{OLD_NAME}`: the name is allowed in {} only", source.path, OLD_NAME_MAY.join(" and "))]
}

/// Returns true if `line` contains `word` as a whole word.
fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word)
        .any(|(at, _)| !line[..at].ends_with(is_word) && !line[at + word.len()..].starts_with(is_word))
}

mod checker {
    use super::*;

    fn source(path: &str, text: &str) -> SourceFile {
        SourceFile { path: path.into(), text: text.into() }
    }

    #[test]
    fn long_and_nameless_files_are_found() {
        let long = format!("//! Long.\n{}", "x\n".repeat(LINES));
        assert_eq!(shape_faults(&source("a.rs", &long)).len(), 1);
        assert_eq!(shape_faults(&source("a.rs", "use x;\n")).len(), 1);
        assert_eq!(shape_faults(&source("a.rs", "//! \n")).len(), 1);
        assert_eq!(shape_faults(&source("a.rs", "//! Short.\n")).len(), 0);
    }

    #[test]
    fn leftovers_and_machine_paths_are_found() {
        for text in [concat!("// TO", "DO: later"), concat!("to", "do!()"), concat!("cd /wo", "rk/x")] {
            assert_eq!(leftover_faults(&source("a.rs", text)).len(), 1, "{text}");
        }
        assert_eq!(leftover_faults(&source("a.rs", "let mastodon = 1; // of a method")).len(), 0);
    }

    #[test]
    fn the_old_name_is_found_outside_its_two_files() {
        let text = format!("//! {OLD_NAME}s\n");
        assert_eq!(old_name_faults(&source("coordinator/web/src/http/me.rs", &text)).len(), 1);
        assert_eq!(old_name_faults(&source("coordinator/web/src/http/legacy.rs", &text)).len(), 0);
        assert_eq!(old_name_faults(&source("coordinator/notify/src/render/alert_payload.rs", &text)).len(), 0);
        assert_eq!(old_name_faults(&source("agent/src/legacy.rs", &text)).len(), 1);
    }
}
