//! Rules for templates, style sheets and scripts: they are written to be read; the build takes the layout out.

use super::source::{SourceFile, files};

/// Longest line, in characters.
const LINE: usize = 120;

#[test]
fn front_end_sources_have_short_lines() {
    let found = [(".html", 15), (".svg", 1), (".txt", 0), (".css", 10), (".js", 5)].map(|(ending, least)| {
        let found = sources(&[ending]);
        assert!(found.len() > least, "only {} sources end with {ending}", found.len());
        found
    });
    let faults: Vec<String> = found.iter().flatten().flat_map(long_lines).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn a_line_has_one_declaration_or_one_statement() {
    let sheets = sources(&[".css"]);
    let scripts = sources(&[".js"]);
    assert!(sheets.len() > 5 && scripts.len() > 3, "the sources are found");
    let faults: Vec<String> =
        sheets.iter().flat_map(crowded_rules).chain(scripts.iter().flat_map(crowded_statements)).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn no_word_touches_the_element_in_the_next_line() {
    let templates = sources(&[".html"]);
    let faults: Vec<String> = templates.iter().flat_map(touching_words).collect();
    assert!(
        faults.is_empty(),
        "the build joins these lines; end the first with {{{{ \" \" }}}}:\n{}",
        faults.join("\n")
    );
    let sample = |text: &str| SourceFile { path: "sample.html".to_owned(), text: text.to_owned() };
    assert_eq!(touching_words(&sample("<p>\n  a link with\n  <code>x</code>\n</p>")), ["sample.html:2"]);
    assert_eq!(touching_words(&sample("<p class=\"hint\">a link with\n  <code>x</code></p>")), ["sample.html:1"]);
    assert!(touching_words(&sample("<p>\n  a link with{{ \" \" }}\n  <code>x</code>\n</p>")).is_empty());
}

/// Returns the lines of text that are followed by an element within the line.
fn touching_words(source: &SourceFile) -> Vec<String> {
    const WITHIN: [&str; 7] = ["<a ", "<b>", "<code", "<em", "<kbd", "<strong", "<time"];
    let lines: Vec<&str> = source.text.lines().map(str::trim).collect();
    let ends_in_text = |line: &str| {
        // Behind the last tag; not an attribute of a tag that is over several lines.
        let tail = line.rsplit(['>', '}']).next().unwrap_or_default();
        let is_text = tail.ends_with(|last: char| last.is_alphanumeric() || ",.:;!?”’".contains(last));
        is_text && !tail.contains(['<', '{']) && !tail.contains("=\"")
    };
    let pairs = lines.windows(2).enumerate();
    let touching = pairs.filter(|(_, two)| ends_in_text(two[0]) && WITHIN.iter().any(|it| two[1].starts_with(it)));
    touching.map(|(no, _)| format!("{}:{}", source.path, no + 1)).collect()
}

fn sources(endings: &[&str]) -> Vec<SourceFile> {
    let is_front_end = |source: &SourceFile| {
        ["coordinator/web/templates/", "coordinator/web/assets/", "coordinator/notify/templates/"]
            .iter()
            .any(|folder| source.path.starts_with(folder))
    };
    files(endings).into_iter().filter(is_front_end).collect()
}

fn long_lines(source: &SourceFile) -> Vec<String> {
    let lines = source.text.lines().enumerate().map(|(no, line)| (no + 1, line.chars().count()));
    lines
        .filter(|(_, length)| *length > LINE)
        .map(|(no, length)| format!("{}:{no}: {length} characters, at most {LINE} allowed", source.path))
        .collect()
}

/// Returns the lines of a style sheet that are more than a selector, a declaration, a brace or a comment.
fn crowded_rules(source: &SourceFile) -> Vec<String> {
    let is_crowded = |line: &str| {
        let inner = line.strip_suffix(['{', ';', ',']).unwrap_or(line);
        line != "}" && inner.contains(['{', '}', ';'])
    };
    crowded(source, is_crowded, "write one declaration a line, and each brace at the end of a line or alone")
}

/// Returns the lines of a script with more than one statement.
fn crowded_statements(source: &SourceFile) -> Vec<String> {
    crowded(source, |line| line.contains("; ") || line.contains(";}"), "write one statement a line")
}

/// Returns the lines outside comments for which `is_crowded` is true.
fn crowded(source: &SourceFile, is_crowded: impl Fn(&str) -> bool, advice: &str) -> Vec<String> {
    let lines = source.text.lines().map(str::trim).enumerate();
    lines
        .filter(|(_, line)| !line.starts_with("//") && !line.starts_with("/*") && is_crowded(line))
        .map(|(no, _)| format!("{}:{}: {advice}", source.path, no + 1))
        .collect()
}

mod checker {
    use super::*;

    fn faults(check: fn(&SourceFile) -> Vec<String>, text: &str) -> usize {
        check(&SourceFile { path: "sample".to_owned(), text: text.to_owned() }).len()
    }

    #[test]
    fn long_lines_are_found() {
        assert_eq!(faults(long_lines, &"ä".repeat(LINE)), 0);
        assert_eq!(faults(long_lines, &"a".repeat(LINE + 1)), 1);
    }

    #[test]
    fn crowded_style_sheets_are_found() {
        assert_eq!(faults(crowded_rules, "/* a; b */\n@media print {\n  a,\n  b {\n    c: d;\n  }\n}\n"), 0);
        for crowded in ["a { b: c; }", "b: c; d: e;", "a {}", "} b {"] {
            assert_eq!(faults(crowded_rules, crowded), 1, "{crowded}");
        }
    }

    #[test]
    fn crowded_scripts_are_found() {
        assert_eq!(faults(crowded_statements, "// a; b\nif (a) return;\nb = () => {\n  c();\n};\n"), 0);
        for crowded in ["a(); b();", "if (a) { b(); }", "() => {a();}"] {
            assert_eq!(faults(crowded_statements, crowded), 1, "{crowded}");
        }
    }
}
