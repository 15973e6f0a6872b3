//! Source files for the tidy checks: discovery, and removal of comments, literals and test-only items.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A file of the source tree.
#[derive(Debug, Clone)]
pub(super) struct SourceFile {
    /// Path relative to the root, with forward slashes.
    pub(super) path: String,
    /// Contents.
    pub(super) text: String,
}

/// Returns the root of the source tree.
pub(super) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ lies in the tree").to_path_buf()
}

/// Returns every file whose name ends with one of `endings`, ordered by path, without build output and version
/// control.
pub(super) fn files(endings: &[&str]) -> Vec<SourceFile> {
    let root = root();
    let mut found = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("folder can be read") {
            let entry = entry.expect("entry can be read");
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().into_owned();
            if path.is_dir() {
                if !matches!(name.as_str(), "target" | ".git" | "parallax-data") {
                    folders.push(path);
                }
            } else if endings.iter().any(|ending| name.ends_with(ending)) {
                let below = path.strip_prefix(&root).expect("found below the root");
                let text = std::fs::read_to_string(&path).expect("file is text");
                found.push(SourceFile { path: below.to_string_lossy().replace('\\', "/"), text });
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// Returns the files that are built for tests only: folders named `tests`, files named `tests.rs`, and modules
/// declared under `#[cfg(test)]`.
pub(super) fn test_only(sources: &[SourceFile]) -> BTreeSet<String> {
    let mut found: BTreeSet<String> = sources
        .iter()
        .map(|source| source.path.clone())
        .filter(|path| path.starts_with("tests/") || path.contains("/tests/") || path.ends_with("/tests.rs"))
        .collect();
    for source in sources {
        let (folder, name) = source.path.rsplit_once('/').unwrap_or(("", &source.path));
        let own = match name {
            "mod.rs" | "lib.rs" | "main.rs" => folder.to_owned(),
            _ => source.path.trim_end_matches(".rs").to_owned(),
        };
        for module in without_tests(&code(&source.text)).1 {
            let (file, below) = (format!("{own}/{module}.rs"), format!("{own}/{module}/"));
            let within = sources.iter().map(|other| &other.path);
            found.extend(within.filter(|path| **path == file || path.starts_with(&below)).cloned());
        }
    }
    found
}

/// Blanks comments, string and character literals; line numbers do not change.
pub(super) fn code(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let at = |i: usize| chars.get(i).copied().unwrap_or('\0');
    let mut out = String::with_capacity(text.len());
    let mut i = 0;
    while i < chars.len() {
        let end = match (at(i), at(i + 1)) {
            ('/', '/') => (i..chars.len()).find(|&j| at(j) == '\n').unwrap_or(chars.len()),
            ('/', '*') => block_comment_end(&chars, i),
            ('"', _) => string_end(&chars, i),
            ('r', '"' | '#') if !is_word(at(i.wrapping_sub(1))) => raw_string_end(&chars, i + 1).unwrap_or(i),
            ('b', 'r') if !is_word(at(i.wrapping_sub(1))) => raw_string_end(&chars, i + 2).unwrap_or(i),
            ('\'', '\\') => (i + 3..chars.len()).find(|&j| at(j) == '\'').map_or(chars.len(), |j| j + 1),
            ('\'', _) if at(i + 2) == '\'' => i + 3,
            _ => i,
        };
        if end == i {
            out.push(at(i));
            i += 1;
        } else {
            out.extend(chars[i..end.min(chars.len())].iter().map(|&c| if c == '\n' { '\n' } else { ' ' }));
            i = end;
        }
    }
    out
}

/// Returns the contents of all string literals, each with its line, counted from 1. They are as the compiler reads
/// them: a text that is split over several lines is one.
pub(super) fn literals(text: &str) -> Vec<(usize, String)> {
    let chars: Vec<char> = text.chars().collect();
    let at = |i: usize| chars.get(i).copied().unwrap_or('\0');
    let mut found = Vec::new();
    let (mut i, mut line) = (0, 1);
    while i < chars.len() {
        let is_start = !is_word(at(i.wrapping_sub(1)));
        let (end, inner) = match (at(i), at(i + 1)) {
            ('/', '/') => ((i..chars.len()).find(|&j| at(j) == '\n').unwrap_or(chars.len()), None),
            ('/', '*') => (block_comment_end(&chars, i), None),
            ('"', _) => (string_end(&chars, i), Some(i + 1)),
            ('r', '"' | '#') if is_start => {
                let end = raw_string_end(&chars, i + 1).unwrap_or(i);
                (end, Some(i + 1).filter(|_| end > i))
            }
            ('b', 'r') if is_start => {
                let end = raw_string_end(&chars, i + 2).unwrap_or(i);
                (end, Some(i + 2).filter(|_| end > i))
            }
            ('\'', '\\') => ((i + 3..chars.len()).find(|&j| at(j) == '\'').map_or(chars.len(), |j| j + 1), None),
            ('\'', _) if at(i + 2) == '\'' => (i + 3, None),
            _ => (i, None),
        };
        let end = end.max(i + 1).min(chars.len());
        if let Some(inner) = inner {
            let literal: String = chars[inner..end.saturating_sub(1).max(inner)].iter().collect();
            found.push((line, unescaped(&literal)));
        }
        line += chars[i..end].iter().filter(|&&c| c == '\n').count();
        i = end;
    }
    found
}

/// Joins the lines of a literal that end in a backslash, and replaces escaped line ends and quotes.
fn unescaped(literal: &str) -> String {
    let mut text = String::with_capacity(literal.len());
    let mut chars = literal.chars().peekable();
    while let Some(letter) = chars.next() {
        match (letter, chars.peek()) {
            ('\\', Some('\n')) => while chars.next_if(|next| next.is_whitespace()).is_some() {},
            ('\\', Some('n' | 't' | 'r')) => {
                chars.next();
                text.push(' ');
            }
            ('\\', Some('"' | '\\' | '\'')) => text.extend(chars.next()),
            _ => text.push(letter),
        }
    }
    text
}

/// Blanks the items under `#[cfg(test)]`, and returns the names of their modules that have their own file. Expects the
/// output of [`code`].
pub(super) fn without_tests(code: &str) -> (String, Vec<String>) {
    const MARK: &str = "#[cfg(test)]";
    let mut rest = code;
    let mut kept = String::with_capacity(code.len());
    let mut modules = Vec::new();
    while let Some(at) = rest.find(MARK) {
        kept.push_str(&rest[..at]);
        let item = &rest[at + MARK.len()..];
        let end = item_end(item);
        let mut words = item[..end].trim_end_matches(';').split_whitespace().skip_while(|word| *word != "mod");
        if item[..end].ends_with(';') && words.next().is_some() {
            modules.extend(words.next().map(str::to_owned));
        }
        kept.extend(item[..end].chars().filter(|&c| c == '\n'));
        rest = &item[end..];
    }
    kept.push_str(rest);
    (kept, modules)
}

/// Returns true if `c` can be part of a name.
pub(super) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns the end of the item at the start of `text`: a semicolon outside of braces, or its closing brace.
fn item_end(text: &str) -> usize {
    let mut depth = 0_usize;
    for (i, c) in text.char_indices() {
        match c {
            ';' if depth == 0 => return i + 1,
            '{' => depth += 1,
            '}' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return i + 1;
                }
            }
            _ => {}
        }
    }
    text.len()
}

fn block_comment_end(chars: &[char], start: usize) -> usize {
    let mut depth = 0_usize;
    let mut i = start;
    while i + 1 < chars.len() {
        match (chars[i], chars[i + 1]) {
            ('/', '*') => {
                depth += 1;
                i += 2;
            }
            ('*', '/') => {
                depth -= 1;
                i += 2;
                if depth == 0 {
                    return i;
                }
            }
            _ => i += 1,
        }
    }
    chars.len()
}

fn string_end(chars: &[char], start: usize) -> usize {
    let mut i = start + 1;
    while i < chars.len() {
        match chars[i] {
            '\\' => i += 2,
            '"' => return i + 1,
            _ => i += 1,
        }
    }
    chars.len()
}

/// Returns the end of a raw string whose hashes or quote begin at `start`; `None` if no raw string begins there.
fn raw_string_end(chars: &[char], start: usize) -> Option<usize> {
    let hashes = chars[start..].iter().take_while(|&&c| c == '#').count();
    if chars.get(start + hashes) != Some(&'"') {
        return None;
    }
    let mut i = start + hashes + 1;
    while i < chars.len() {
        if chars[i] == '"' && chars[i + 1..].iter().take_while(|&&c| c == '#').count() >= hashes {
            return Some(i + 1 + hashes);
        }
        i += 1;
    }
    Some(chars.len())
}

#[test]
fn comments_texts_and_characters_are_no_code() {
    let text = "a // use x;\n/* b /* c */ d */ e \"f\\\" g\" h r#\"i \"j\" k\"# l 'm' '\\n' &'n o b\"p\"";
    let words: Vec<String> = code(text).split_whitespace().map(str::to_owned).collect();
    assert_eq!(words, ["a", "e", "h", "l", "&'n", "o", "b"]);
    assert_eq!(code(text).lines().count(), text.lines().count());
}

#[test]
fn literals_are_read_as_the_compiler_reads_them() {
    let text = "// \"no\"\nf(\"one \\\n    text\");\ng(r#\"raw \"x\"\"#, '\"', \"a\\\"b\");";
    let found = literals(text);
    let lines: Vec<usize> = found.iter().map(|(line, _)| *line).collect();
    let texts: Vec<&str> = found.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!((lines, texts[0], texts[2]), (vec![2, 4, 4], "one text", "a\"b"));
    assert!(texts[1].contains("raw \"x\""), "{texts:?}");
}

#[test]
fn test_items_are_left_out_and_their_files_are_known() {
    let text = "use a;\n#[cfg(test)]\nmod contract;\nfn f() {}\n#[cfg(test)]\nmod tests {\n    use b;\n}\nfn g() {}\n";
    let (kept, modules) = without_tests(text);
    assert_eq!(modules, ["contract"]);
    assert!(kept.contains("fn f()") && kept.contains("fn g()") && !kept.contains("use b"));

    let source = |path: &str, text: &str| SourceFile { path: path.into(), text: text.into() };
    let sources = [
        source("c/src/storage/mod.rs", text),
        source("c/src/storage/contract.rs", ""),
        source("c/src/storage/disk.rs", ""),
        source("c/src/storage/disk/tests.rs", ""),
    ];
    let found: Vec<String> = test_only(&sources).into_iter().collect();
    assert_eq!(found, ["c/src/storage/contract.rs", "c/src/storage/disk/tests.rs"]);
}
