//! Plain words: no dialect in comments and texts, doc comments that name their thing first, and one name for one type.

use std::collections::BTreeMap;

use super::source::{SourceFile, code, files, is_word, test_only, without_tests};

/// Phrases of the project's former dialect. Split here, so that this file passes its own check.
pub(super) const BANNED: &[&str] = &[
    concat!("tell", " of"),
    concat!("tells", " of"),
    concat!("told", " of"),
    concat!("telling", " of"),
    concat!("who", "ever"),
    concat!("an", "ew"),
    concat!("of be", "fore"),
    concat!("none of its ", "affair"),
    concat!("what came ", "of"),
    concat!("so say it ", "truly"),
    concat!("no longer ", "so"),
    concat!("the ri", "ver"),
    concat!("nobody's ", "here"),
];

/// Words that a doc comment does not begin with: they ask a question, where a noun or a verb would name the thing.
const QUESTIONS: &[&str] = &["What", "Who", "Which", "Whose", concat!("Who", "ever"), "Whether", "That"];

/// Past participles that do not end in "ed". As the whole name of a type they say nothing of what it is.
const IRREGULAR: &[&str] = &[
    "Begun", "Broken", "Built", "Done", "Drawn", "Fed", "Found", "Given", "Gone", "Got", "Heard", "Held", "Kept",
    "Known", "Laid", "Left", "Lent", "Lost", "Made", "Meant", "Met", "Read", "Said", "Seen", "Sent", "Shown", "Spoken",
    "Taken", "Told", "Undrawn", "Unkept", "Unread", "Unseen", "Written",
];
/// Names that end in "ed" and are nouns.
const NOUNS: &[&str] = &["Feed", "Need", "Seed", "Speed"];

/// Public types that share a bare name on purpose, with the reason.
const SHARED_NAMES: &[(&str, &str)] = &[];

/// Finds banned phrases in a file; each with the line that it begins in, counted from 1. A phrase may be split over two
/// lines of a comment, a paragraph or a text.
pub(super) fn banned(text: &str) -> Vec<(usize, &'static str)> {
    let lines: Vec<(bool, String)> = text.lines().map(bare_line).collect();
    let mut found = Vec::new();
    for (index, (is_comment, line)) in lines.iter().enumerate() {
        let inside = banned_in_text(line);
        found.extend(inside.iter().map(|phrase| (index + 1, *phrase)));
        let next = lines.get(index + 1).filter(|(other, next)| other == is_comment && !next.is_empty());
        if let Some((_, next)) = next.filter(|_| !line.is_empty()) {
            let known = [inside, banned_in_text(next)].concat();
            let joined = banned_in_text(&format!("{line} {next}"));
            found.extend(joined.into_iter().filter(|phrase| !known.contains(phrase)).map(|phrase| (index + 1, phrase)));
        }
    }
    found
}

/// Finds banned phrases in one running text, however its lines are broken.
pub(super) fn banned_in_text(text: &str) -> Vec<&'static str> {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
    let is_whole =
        |phrase: &str, at: usize| !text[..at].ends_with(is_word) && !text[at + phrase.len()..].starts_with(is_word);
    let is_found = |phrase: &&&str| text.match_indices(**phrase).any(|(at, _)| is_whole(phrase, at));
    BANNED.iter().filter(is_found).copied().collect()
}

/// Returns whether a line is a comment of Rust or JavaScript, and its words without the marks around them.
fn bare_line(line: &str) -> (bool, String) {
    let line = line.trim();
    let is_comment = line.starts_with("//");
    let marks: &[char] = if is_comment { &['/', '!'] } else { &['#', '*', '>'] };
    (is_comment, line.trim_start_matches(marks).trim_end_matches('\\').trim().to_owned())
}

#[test]
fn no_comment_or_text_has_a_banned_phrase() {
    let endings = [".rs", ".md", ".html", ".txt", ".css", ".js", ".toml", ".story", ".service", ".conf", ".yml", "run"];
    let mut faults = Vec::new();
    for source in files(&endings) {
        let found = banned(&source.text).into_iter();
        faults.extend(found.map(|(line, phrase)| format!("{}:{line}: `{phrase}`", source.path)));
    }
    assert!(faults.is_empty(), "say it in the field's words:\n{}", faults.join("\n"));
}

#[test]
fn doc_comments_name_their_thing_first() {
    let faults: Vec<String> = files(&[".rs"]).iter().flat_map(question_faults).collect();
    assert!(faults.is_empty(), "begin with a noun or a verb in the third person:\n{}", faults.join("\n"));
}

#[test]
fn public_types_have_one_name_each() {
    let sources = files(&[".rs"]);
    let tests = test_only(&sources);
    let mut places = BTreeMap::<String, Vec<String>>::new();
    for source in sources.iter().filter(|source| !tests.contains(&source.path)) {
        for name in public_types(source) {
            places.entry(name).or_default().push(source.path.clone());
        }
    }
    let faults: Vec<String> = places
        .into_iter()
        .filter(|(name, at)| at.len() > 1 && !SHARED_NAMES.iter().any(|(shared, _)| shared == name))
        .map(|(name, at)| format!("{name}: {}", at.join(", ")))
        .collect();
    assert!(faults.is_empty(), "public types of one bare name:\n{}", faults.join("\n"));
}

#[test]
fn no_type_is_a_bare_past_participle() {
    let sources = files(&[".rs"]);
    let tests = test_only(&sources);
    let mut faults = Vec::new();
    for source in sources.iter().filter(|source| !tests.contains(&source.path)) {
        let names = types(source).into_iter().map(|(_, name)| name);
        faults.extend(names.filter(|name| is_participle(name)).map(|name| format!("{}: {name}", source.path)));
    }
    assert!(faults.is_empty(), "name the thing, not what was done to it:\n{}", faults.join("\n"));
}

/// Doc comments of a file that begin with a question word. Only the first line of each comment counts.
fn question_faults(source: &SourceFile) -> Vec<String> {
    let mut faults = Vec::new();
    let mut before = "";
    for (index, line) in source.text.lines().enumerate() {
        let line = line.trim_start();
        let is_doc = |line: &str| line.starts_with("///") || line.starts_with("//!");
        let begins = is_doc(line) && (!is_doc(before) || before.trim_end().len() == "///".len());
        let first = line.get("///".len()..).unwrap_or_default().trim_start();
        let word = first.split(|c: char| !is_word(c)).next().unwrap_or_default();
        if begins && QUESTIONS.contains(&word) {
            faults.push(format!("{}:{}: {line}", source.path, index + 1));
        }
        before = line;
    }
    faults
}

/// Types that a file declares outside of its tests: whether they are visible beyond their module, and their names.
fn types(source: &SourceFile) -> Vec<(bool, String)> {
    let text = without_tests(&code(&source.text)).0;
    let mut found = Vec::new();
    for line in text.lines() {
        let line = line.trim_start();
        let (public, item) = match line.strip_prefix("pub") {
            Some(rest) if rest.starts_with('(') => {
                (!rest.starts_with("(self)"), rest.split_once(") ").map_or("", |(_, item)| item))
            }
            Some(rest) if rest.starts_with(' ') => (true, rest.trim_start()),
            _ => (false, line),
        };
        let keyword = ["struct ", "enum ", "trait ", "union "].into_iter().find_map(|it| item.strip_prefix(it));
        let name: String = keyword.unwrap_or_default().chars().take_while(|c| is_word(*c)).collect();
        if !name.is_empty() {
            found.push((public, name));
        }
    }
    found
}

fn public_types(source: &SourceFile) -> Vec<String> {
    types(source).into_iter().filter(|(public, _)| *public).map(|(_, name)| name).collect()
}

fn is_participle(name: &str) -> bool {
    let is_one_word = name.chars().skip(1).all(char::is_lowercase);
    is_one_word && (IRREGULAR.contains(&name) || (name.ends_with("ed") && !NOUNS.contains(&name)))
}

mod checker {
    use super::*;

    fn source(text: &str) -> SourceFile {
        SourceFile { path: "a.rs".into(), text: text.into() }
    }

    #[test]
    fn banned_phrases_are_found_as_whole_words() {
        assert_eq!(banned(concat!("// is Told", " of it")).len(), 1);
        assert_eq!(banned(concat!("x\nbegins an", "ew.")), [(2, concat!("an", "ew"))]);
        assert_eq!(banned(concat!("the canew", "eave")).len(), 0);
    }

    #[test]
    fn a_phrase_that_is_split_over_two_lines_is_found() {
        let phrase = concat!("told", " of");
        for split in
            ["/// It is told\n    /// of it.", "\"It is told \\\n  of it\"", "It is told\nof it.", "# told\n# of"]
        {
            assert_eq!(banned(split), [(1, phrase)], "{split}");
        }
        for apart in ["// It is told\n\n// of it", "// It is told\nof(it)", "told\n\nof"] {
            assert!(banned(apart).is_empty(), "{apart}");
        }
        assert_eq!(banned_in_text("it is told\n      of"), [phrase]);
    }

    #[test]
    fn only_the_first_line_of_a_doc_comment_counts() {
        assert_eq!(question_faults(&source(concat!("/// Wh", "o may.\nfn f() {}"))).len(), 1);
        assert_eq!(question_faults(&source("/// Limits those\n/// Who may.\nfn f() {}")).len(), 0);
        assert_eq!(question_faults(&source(concat!("//! A limit.\n//!\n//! Wh", "at it limits."))).len(), 1);
        assert_eq!(question_faults(&source("// What a comment in code says.")).len(), 0);
    }

    #[test]
    fn types_are_found_with_their_visibility() {
        let text = "pub(crate) struct A;\nenum B {}\n    pub trait C {}\n#[cfg(test)]\nmod tests { pub struct D; }\n";
        let found = types(&source(text));
        assert_eq!(found, [(true, "A".to_owned()), (false, "B".to_owned()), (true, "C".to_owned())]);
        assert_eq!(public_types(&source(text)), ["A", "C"]);
    }

    #[test]
    fn bare_participles_are_found() {
        assert!(["Kept", "Settled", "Told"].into_iter().all(is_participle));
        assert!(["KeptPage", "Feed", "Store", "Batch"].into_iter().all(|name| !is_participle(name)));
    }
}
