//! Checks `SECURITY.md`: each promise names a test that exists.

use std::fs;

use super::source::root;

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

#[test]
fn every_promise_names_a_test_that_exists() {
    let root = root();
    let text = fs::read_to_string(root.join("SECURITY.md")).expect("SECURITY.md");
    let rows = text.lines().filter(|line| line.starts_with("| ")).count();
    let named = named(&text);
    assert!(named.len() >= 20 && named.len() + 30 > rows, "{} of {rows} rows name a test", named.len());
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
