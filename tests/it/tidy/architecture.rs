//! Compares the tables of `ARCHITECTURE.md` with those that the import rules apply, in both directions.

use std::collections::BTreeSet;

use super::source::root;
use super::tables::{CRATES, MODULE_RULES, ModuleRule, RESTRICTED_NAMES, RestrictedName, UNRESTRICTED};

/// Something that imports, and what it may import.
type Rules = BTreeSet<(String, BTreeSet<String>)>;

#[test]
fn the_page_has_the_module_rules() {
    let applied =
        MODULE_RULES.iter().map(|ModuleRule(module, may, _)| rule(module, may.iter().map(|may| (*may).to_owned())));
    let everything = UNRESTRICTED.iter().map(|module| rule(module, ["everything".to_owned()]));
    assert_same(&module_rules(&page()), &applied.chain(everything).collect());
}

#[test]
fn the_page_has_the_crate_rules() {
    let short = |name: &&str| name.trim_start_matches("parallax-").to_owned();
    let applied = CRATES.iter().map(|(folder, may, _)| rule(folder, may.iter().map(short)));
    assert_same(&crate_rules(&page()), &applied.collect());
}

#[test]
fn the_page_has_the_names_with_one_home() {
    // As the page writes it: `web/http` for `coordinator/web/src/http`, `app` for `coordinator/src/app`.
    let short = |place: &&str| {
        let below = place.strip_prefix("coordinator/").unwrap_or(place);
        below.strip_prefix("src/").unwrap_or(below).replacen("/src", "", 1)
    };
    let applied = RESTRICTED_NAMES.iter().map(|RestrictedName(name, places, _)| rule(name, places.iter().map(short)));
    assert_same(&names_with_one_home(&page()), &applied.collect());
}

fn page() -> String {
    std::fs::read_to_string(root().join("ARCHITECTURE.md")).expect("the page is checked in")
}

fn rule(name: &str, may: impl IntoIterator<Item = String>) -> (String, BTreeSet<String>) {
    (name.to_owned(), may.into_iter().collect())
}

fn assert_same(page: &Rules, applied: &Rules) {
    let missing = applied.difference(page).map(|rule| format!("only in tests/it/tidy/tables.rs: {rule:?}"));
    let outdated = page.difference(applied).map(|rule| format!("only in ARCHITECTURE.md: {rule:?}"));
    let faults: Vec<String> = missing.chain(outdated).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Reads the table of modules: names in backquotes, then what each of them may import.
fn module_rules(page: &str) -> Rules {
    let rows = rows(section(page, "Who may import whom")).into_iter();
    rows.flat_map(|row| quoted(&row[0]).into_iter().map(move |module| rule(&module, list(&row[1])))).collect()
}

/// Reads the table of crates: the folder in backquotes, and in the last column what it may import. The tests may import
/// any.
fn crate_rules(page: &str) -> Rules {
    let rows = rows(section(page, "Where things live")).into_iter().filter(|row| row.len() == 4);
    let rows = rows.filter(|row| !row[3].starts_with("any"));
    rows.map(|row| rule(row[0].trim_matches('`').trim_end_matches('/'), list(&row[3]))).collect()
}

/// Reads the sentence of the names with one home: names in backquotes, `in`, and places.
fn names_with_one_home(page: &str) -> Rules {
    let sentence = section(page, "Who may import whom").replace('\n', " ");
    let (_, sentence) = sentence.split_once("Names with one home: ").expect("the page has the sentence");
    let (sentence, _) = sentence.split_once(". ").expect("the sentence ends");
    let homes = sentence.split("; ").map(|part| part.split_once(" in ").expect("a part has names and places"));
    homes.flat_map(|(names, places)| quoted(names).into_iter().map(|name| rule(&name, list(places)))).collect()
}

/// Returns the text below a heading.
fn section<'a>(page: &'a str, heading: &str) -> &'a str {
    let (_, below) = page.split_once(&format!("\n## {heading}\n")).expect("the page has the heading");
    below.split("\n## ").next().unwrap_or_default()
}

/// Returns the cells of the table rows below the head of each table.
fn rows(section: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let mut is_body = false;
    for line in section.lines() {
        let Some(cells) = line.strip_prefix('|').and_then(|line| line.strip_suffix('|')) else {
            is_body = false;
            continue;
        };
        if is_body {
            found.push(cells.split('|').map(|cell| cell.trim().to_owned()).collect());
        }
        is_body |= cells.trim_start().starts_with("---");
    }
    found
}

/// Returns the entries of a list, without remarks in parentheses; `none` has no entries.
fn list(cell: &str) -> Vec<String> {
    let entries = cell.split(", ").map(|entry| entry.split(" (").next().unwrap_or_default().trim().to_owned());
    entries.filter(|entry| entry != "none").collect()
}

/// Returns the words in backquotes.
fn quoted(text: &str) -> Vec<String> {
    text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn tables_and_sentences_are_read() {
    let page = "\n## Where things live\n\n| folder | package | what | may import |\n| --- | --- | --- | --- |\n\
                | `a/b/` | `p` | x | core, agent (only in `up/`) |\n| `c/` | `q` | y | none |\n| `t/` | `r` | z | any |\n\
                \n| module | what | begin |\n| --- | --- | --- |\n| `m` | x | y |\n\
                \n## Who may import whom\n\n| module | may import |\n| --- | --- |\n| `a`, `b` | none |\n\
                | `c` | a, d/e |\n\nNames with one home: `n`, `o` in p/q, r; `s` in\nt. More.\n\n## Next\n| no |\n";
    let set = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<BTreeSet<String>>();
    let rules =
        |list: &[(&str, &[&str])]| list.iter().map(|(name, may)| ((*name).to_owned(), set(may))).collect::<Rules>();
    assert_eq!(crate_rules(page), rules(&[("a/b", &["core", "agent"]), ("c", &[])]));
    assert_eq!(module_rules(page), rules(&[("a", &[]), ("b", &[]), ("c", &["a", "d/e"])]));
    let homes = rules(&[("n", &["p/q", "r"]), ("o", &["p/q", "r"]), ("s", &["t"])]);
    assert_eq!(names_with_one_home(page), homes);
}
