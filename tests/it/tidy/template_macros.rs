//! Arguments of template macros. A call binds the parameters one after another, in one scope: an argument that has the
//! name of an earlier parameter is that parameter's value, not the screen's field of that name.

use std::collections::{BTreeMap, BTreeSet};

use super::source::{SourceFile, files};

/// Parameters of each macro, by file name and macro name.
type Macros = BTreeMap<(String, String), Vec<String>>;

#[test]
fn no_argument_of_a_macro_is_captured_by_an_earlier_parameter() {
    let templates: Vec<SourceFile> =
        files(&[".html"]).into_iter().filter(|source| source.path.contains("/templates/")).collect();
    let macros = macros(&templates);
    assert!(macros.len() > 30, "only {} macros were found", macros.len());
    let (faults, calls) = captured(&templates, &macros);
    assert!(calls > 200, "only {calls} calls were found");
    assert!(faults.is_empty(), "write `self.name` for a field of the screen:\n{}", faults.join("\n"));
}

fn macros(templates: &[SourceFile]) -> Macros {
    let mut macros = Macros::new();
    for source in templates {
        for (_, definition) in source.text.match_indices("{% macro ").filter_map(|(at, _)| rest(&source.text, at + 9)) {
            let Some((name, parameters)) = definition.split_once('(') else { continue };
            let parameters = parameters.split(')').next().unwrap_or_default();
            let parameters = parameters.split(',').map(|it| it.trim().to_owned()).filter(|it| !it.is_empty());
            macros.insert((file_name(&source.path), name.trim().to_owned()), parameters.collect());
        }
    }
    macros
}

/// Returns the captured arguments, and the number of calls that were looked at.
fn captured(templates: &[SourceFile], macros: &Macros) -> (Vec<String>, usize) {
    let (mut faults, mut calls) = (Vec::new(), 0);
    for source in templates {
        let aliases = aliases(source);
        for (at, call) in source.text.match_indices("{{").filter_map(|(at, _)| rest(&source.text, at + 2)) {
            let Some((name, arguments)) = call.trim_start_matches(['-', ' ']).split_once('(') else { continue };
            let (file, name) = match name.split_once("::") {
                Some((alias, name)) => (aliases.get(alias).cloned().unwrap_or_default(), name),
                None => (file_name(&source.path), name),
            };
            let Some(parameters) = macros.get(&(file, name.to_owned())) else { continue };
            calls += 1;
            let arguments = arguments_of(arguments);
            for (place, argument) in arguments.iter().enumerate() {
                let names = names_of(argument);
                let earlier = parameters.iter().zip(&arguments).take(place);
                let taken =
                    earlier.filter(|(parameter, value)| names.contains(parameter.as_str()) && value != parameter);
                faults.extend(taken.map(|(parameter, _)| {
                    let line = source.text[..at].lines().count();
                    format!("{}:{line}: `{argument}` is the parameter `{parameter}` of {name}", source.path)
                }));
            }
        }
    }
    (faults, calls)
}

fn rest(text: &str, at: usize) -> Option<(usize, &str)> {
    text.get(at..).map(|rest| (at, rest))
}

/// Returns the files that a template imports, by the names that it gives them.
fn aliases(source: &SourceFile) -> BTreeMap<&str, String> {
    let imports = source.text.match_indices("{% import \"").filter_map(|(at, mark)| source.text.get(at + mark.len()..));
    let named = imports.filter_map(|import| {
        let (path, rest) = import.split_once('"')?;
        let alias = rest.trim_start().strip_prefix("as ")?.split_whitespace().next()?;
        Some((alias, file_name(path)))
    });
    named.collect()
}

fn file_name(path: &str) -> String {
    path.rsplit('/').next().unwrap_or(path).to_owned()
}

/// Splits the arguments of a call, up to its closing parenthesis.
fn arguments_of(text: &str) -> Vec<String> {
    let (mut arguments, mut depth, mut is_quoted) = (vec![String::new()], 0, false);
    for letter in text.chars() {
        match letter {
            '"' => is_quoted = !is_quoted,
            '(' | '[' if !is_quoted => depth += 1,
            ')' | ']' if !is_quoted && depth == 0 => break,
            ')' | ']' if !is_quoted => depth -= 1,
            ',' if !is_quoted && depth == 0 => {
                arguments.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(argument) = arguments.last_mut() {
            argument.push(letter);
        }
    }
    arguments.into_iter().map(|argument| argument.trim().to_owned()).collect()
}

/// Returns the variables of an expression: no fields, functions, paths or texts.
fn names_of(argument: &str) -> BTreeSet<String> {
    let unquoted: String = argument.split('"').step_by(2).collect::<Vec<_>>().join("\"\"");
    let mut names = BTreeSet::new();
    let mut before = ' ';
    let mut letters = unquoted.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        if letter.is_ascii_alphabetic() || letter == '_' {
            let name: String =
                unquoted[at..].chars().take_while(|letter| letter.is_ascii_alphanumeric() || *letter == '_').collect();
            for _ in 1..name.len() {
                letters.next();
            }
            let is_called = matches!(letters.peek(), Some((_, '(' | '!' | ':')));
            if !matches!(before, '.' | ':') && !is_called {
                names.insert(name);
            }
        }
        before = letter;
    }
    names
}

mod checker {
    use super::*;

    #[test]
    fn captured_arguments_are_found() {
        let part =
            "{% macro text(name, value) %}{% endmacro %}{% macro all(it) %}{{ text(it.name, name) }}{% endmacro %}";
        let found = |call: &str| {
            let screen = format!("{{% import \"parts/fields.html\" as fields %}}{{{{ fields::{call} }}}}");
            let source = |path: &str, text: &str| SourceFile { path: path.to_owned(), text: text.to_owned() };
            let templates = [source("a/fields.html", part), source("a/screen.html", &screen)];
            captured(&templates, &macros(&templates)).0.len()
        };
        // One is in the part itself.
        for (call, expected) in [
            ("text(\"name\", name)", 2),
            ("text(\"a\", format!(\"{}\", name))", 2),
            ("text(\"name\", self.name)", 1),
            ("text(\"a\", form.value(\"name\"))", 1),
            ("text(name, \"name, too\")", 1),
            ("other(\"name\", name)", 1),
        ] {
            assert_eq!(found(call), expected, "{call}");
        }
    }
}
