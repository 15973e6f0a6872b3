//! Checks `SECURITY.md`: each promise names a test that exists.

use std::fs;

use super::source::root;

/// Head of the tables of promises.
const HEAD: &str = "| promise | test |";

/// Returns the tests that the table rows of `text` name: path and function.
fn named(text: &str) -> Vec<(&str, &str)> {
    text.lines()
        .filter(|line| line.starts_with("| ") && line.contains(".rs`"))
        .filter_map(|line| {
            let mut ticked = line.rsplit('|').find(|cell| cell.contains(".rs`"))?.split('`').skip(1).step_by(2);
            Some((ticked.next()?, ticked.next().unwrap_or_default()))
        })
        .collect()
}

/// Returns the rows of promises that name no test: in a table whose head is `promise` and `test`.
fn without_test(text: &str) -> Vec<&str> {
    let mut is_promises = false;
    let mut faults = Vec::new();
    for line in text.lines() {
        is_promises = line == HEAD || (is_promises && line.starts_with('|'));
        let is_row = is_promises && line != HEAD && !line.starts_with("| ---");
        if is_row && named(line).is_empty() {
            faults.push(line);
        }
    }
    faults
}

#[test]
fn a_promise_without_a_test_is_a_fault() {
    let table =
        format!("| party | has |\n| --- | --- |\n| host | all |\n\n{HEAD}\n| --- | --- |\n| kept | `a.rs` `b` |\n");
    assert!(without_test(&table).is_empty());
    assert_eq!(without_test(&format!("{table}| broken | soon |\n")), ["| broken | soon |"]);
}

#[test]
fn every_promise_names_a_test_that_exists() {
    let root = root();
    let text = fs::read_to_string(root.join("SECURITY.md")).expect("SECURITY.md");
    let named = named(&text);
    assert!(named.len() >= 20, "only {} rows name a test", named.len());
    assert_eq!(without_test(&text), [] as [&str; 0], "rows of a table of promises without a test");
    let faults: Vec<String> = named
        .iter()
        .filter(|(path, test)| {
            let source = fs::read_to_string(root.join(path)).unwrap_or_default();
            test.is_empty() || !source.contains(&format!("fn {test}("))
        })
        .map(|(path, test)| format!("{path} has no `{test}`"))
        .collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
