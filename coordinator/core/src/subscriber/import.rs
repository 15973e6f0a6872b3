//! Import of subscribers: pasted addresses, one a line, or a CSV file with a header.

use std::collections::{BTreeMap, BTreeSet};

use super::request::{SubscriberAddress, SubscriptionRequest};
use crate::id::MonitorId;
use crate::validation::{Rule, ValidationErrors};

/// Maximum number of lines of an import.
pub const MAX_IMPORT_LINES: usize = 5_000;
/// Maximum size of an import, in bytes.
pub const MAX_IMPORT_BYTES: usize = 512 * 1024;
/// Refused lines that an answer names, at most; it counts all of them.
pub const MAX_NAMED_LINES: usize = 100;
/// Name of the field with the text.
pub const IMPORT_FIELD: &str = "csv";

/// Names of the column with the address.
const ADDRESS_COLUMNS: [&str; 5] = ["email", "e-mail", "email address", "address", "mail"];
/// Name of the column with the monitors.
const MONITORS_COLUMN: &str = "monitors";
/// Characters between cells.
const SEPARATORS: [char; 3] = [',', ';', '\t'];
/// Characters between the monitors of a cell.
const BETWEEN_MONITORS: [char; 2] = [';', '|'];

/// The lines of an import.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SubscriberImport {
    /// Addresses, each once.
    pub entries: Vec<ImportEntry>,
    /// Lines whose address stands on an earlier line.
    pub repeated: usize,
    /// Lines that break a rule.
    pub refused: Vec<RefusedLine>,
}

/// An address to be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportEntry {
    /// Email address.
    pub address: SubscriberAddress,
    /// Monitors; none means the whole page.
    pub monitors: Option<Vec<MonitorId>>,
}

/// A line that breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedLine {
    /// Its number, from 1.
    pub line: usize,
    /// The rule that it breaks.
    pub rule: Rule,
}

/// Positions of the columns in a line.
struct Columns {
    separator: Option<char>,
    address: usize,
    monitors: Option<usize>,
}

/// Parses the text of an import. `on_page` are the page's monitors: id and name.
///
/// # Errors
/// A text that is too long or without addresses, as an error of the field [`IMPORT_FIELD`].
pub fn parse(text: &str, on_page: &[(MonitorId, String)]) -> Result<SubscriberImport, ValidationErrors> {
    let wrong = |rule: String| Err(ValidationErrors::single(IMPORT_FIELD, rule));
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.len() > MAX_IMPORT_BYTES {
        return wrong(format!("must be at most {} KiB", MAX_IMPORT_BYTES / 1024));
    }
    let mut lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()).peekable();
    let header = lines.peek().and_then(|(_, line)| Columns::of_header(line));
    if header.is_some() {
        lines.next();
    }
    let columns = header.unwrap_or(Columns { separator: None, address: 0, monitors: None });
    let lines: Vec<(usize, &str)> = lines.take(MAX_IMPORT_LINES + 1).collect();
    if lines.is_empty() {
        return wrong("must have at least one address".to_owned());
    }
    if lines.len() > MAX_IMPORT_LINES {
        return wrong(format!("must have at most {MAX_IMPORT_LINES} lines"));
    }
    let monitors = MonitorNames::of(on_page);
    let (mut import, mut known) = (SubscriberImport::default(), BTreeSet::new());
    for (line, text) in lines {
        match columns.read(text, &monitors) {
            Ok(entry) if known.insert(entry.address.normalized()) => import.entries.push(entry),
            Ok(_) => import.repeated += 1,
            Err(rule) => import.refused.push(RefusedLine { line, rule }),
        }
    }
    Ok(import)
}

impl Columns {
    /// Reads the first line as names of columns; `None` if it is none.
    fn of_header(line: &str) -> Option<Self> {
        let separators = SEPARATORS.into_iter().map(Some).chain([None]);
        separators.into_iter().find_map(|separator| {
            let names: Vec<String> =
                cells(line, separator).ok()?.iter().map(|cell| cell.trim().to_lowercase()).collect();
            let address = names.iter().position(|name| ADDRESS_COLUMNS.contains(&name.as_str()))?;
            let monitors = names.iter().position(|name| name == MONITORS_COLUMN);
            Some(Self { separator, address, monitors })
        })
    }

    fn read(&self, line: &str, monitors: &MonitorNames<'_>) -> Result<ImportEntry, Rule> {
        let cells = match self.separator {
            Some(separator) => cells(line, Some(separator))?,
            None => cells(line.trim().trim_end_matches(SEPARATORS), None)?,
        };
        let email = cells.get(self.address).map(|cell| cell.trim()).unwrap_or_default();
        // A spreadsheet's guard against formulas, as exports have it.
        let email = email.strip_prefix('\'').filter(|rest| rest.starts_with(['=', '+', '-', '@'])).unwrap_or(email);
        let monitors = match self.monitors.and_then(|column| cells.get(column)).map(|cell| cell.trim()) {
            None | Some("") => None,
            Some(names) => Some(monitors.find(names)?),
        };
        let request = SubscriptionRequest { email: Some(email.to_owned()), url: None, monitors: None };
        let valid = request.validate(&BTreeSet::new(), &|_| None);
        let valid = valid.map_err(|_| "must be an email address".to_owned())?;
        Ok(ImportEntry { address: valid.address, monitors })
    }
}

/// The page's monitors by id and by name in lower case; `None` for a name that several have.
struct MonitorNames<'a> {
    ids: BTreeSet<&'a MonitorId>,
    names: BTreeMap<String, Option<MonitorId>>,
}

impl<'a> MonitorNames<'a> {
    fn of(on_page: &'a [(MonitorId, String)]) -> Self {
        let mut names = BTreeMap::new();
        for (id, name) in on_page {
            let entry = names.entry(name.trim().to_lowercase());
            entry.and_modify(|known| *known = None).or_insert(Some(*id));
        }
        Self { ids: on_page.iter().map(|(id, _)| id).collect(), names }
    }

    fn find(&self, cell: &str) -> Result<Vec<MonitorId>, Rule> {
        let mut found = BTreeSet::new();
        for name in cell.split(BETWEEN_MONITORS).map(str::trim).filter(|name| !name.is_empty()) {
            let by_id = name.parse::<MonitorId>().ok().filter(|id| self.ids.contains(id));
            let id = match by_id {
                Some(id) => id,
                None => match self.names.get(&name.to_lowercase()) {
                    Some(Some(id)) => *id,
                    Some(None) => return Err("names a monitor that several are called: use its id".to_owned()),
                    None => return Err("names a monitor that is not on this page".to_owned()),
                },
            };
            found.insert(id);
        }
        if found.is_empty() {
            Err("must name at least one monitor".to_owned())
        } else {
            Ok(found.into_iter().collect())
        }
    }
}

/// Splits a line into cells (RFC 4180); without a separator it is one cell. Quotes end on their line.
fn cells(line: &str, separator: Option<char>) -> Result<Vec<String>, Rule> {
    let (mut cells, mut cell, mut is_quoted) = (Vec::new(), String::new(), false);
    let mut chars = line.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '"' if is_quoted && chars.peek() == Some(&'"') => {
                cell.push('"');
                chars.next();
            }
            '"' if is_quoted => is_quoted = false,
            '"' if cell.trim().is_empty() => {
                cell.clear();
                is_quoted = true;
            }
            char if !is_quoted && Some(char) == separator => cells.push(std::mem::take(&mut cell)),
            char => cell.push(char),
        }
    }
    if is_quoted {
        return Err("must close its quotes on the same line".to_owned());
    }
    cells.push(cell);
    Ok(cells)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn monitors() -> Vec<(MonitorId, String)> {
        [(1, "Cart"), (2, "API"), (3, "Twin"), (4, "twin")]
            .map(|(id, name)| (MonitorId::from_u128(id), name.to_owned()))
            .into()
    }

    fn read(text: &str) -> (Vec<String>, Vec<(usize, String)>) {
        let import = parse(text, &monitors()).unwrap();
        let address = |it: &ImportEntry| it.address.normalized().replacen("email:", "", 1);
        let refused = import.refused.into_iter().map(|it| (it.line, it.rule)).collect();
        (import.entries.iter().map(address).collect(), refused)
    }

    #[test]
    fn a_text_has_one_address_a_line() {
        let (found, refused) = read("\u{feff}ann@example.com\r\n\r\n Bob@Example.com ,\nnonsense\nANN@example.com\n");
        assert_eq!(found, ["ann@example.com", "bob@example.com"]);
        assert_eq!(refused, [(4, "must be an email address".to_owned())]);
        assert_eq!(parse("a@b.example\nA@b.example", &[]).unwrap().repeated, 1);
        assert_eq!(read("ann@example.com, bob@example.com").1.len(), 1, "one address a line");
        assert_eq!(read("a@example.com\n=cmd|' /C calc'!A0").1.len(), 1);
    }

    #[test]
    fn a_header_names_the_columns() {
        for text in [
            "Name,Email,Monitors\n\"Lee, Ann\",ann@example.com,cart;API",
            "name;e-mail;monitors\nAnn;ann@example.com;\"Cart; api\"",
            "name\tmonitors\taddress\n\tCart|API\t\"ann@example.com\"",
        ] {
            let import = parse(text, &monitors()).unwrap();
            let both = Some(vec![MonitorId::from_u128(1), MonitorId::from_u128(2)]);
            assert_eq!(import.refused, [], "{text}");
            assert_eq!(import.entries[0].monitors, both, "{text}");
        }
        let id = MonitorId::from_u128(3);
        let (found, refused) = read(&format!(
            "email,monitors\n'+a@example.com,\nb@example.com,{id}\nc@example.com,twin\nd@example.com,Blog\n\
             e@example.com,;\n\"f@example.com,\n,Cart"
        ));
        assert_eq!(found, ["+a@example.com", "b@example.com"]);
        let rules: Vec<_> = refused.iter().map(|(line, rule)| (*line, rule.as_str())).collect();
        assert_eq!(
            rules,
            [
                (4, "names a monitor that several are called: use its id"),
                (5, "names a monitor that is not on this page"),
                (6, "must name at least one monitor"),
                (7, "must close its quotes on the same line"),
                (8, "must be an email address"),
            ]
        );
    }

    #[test]
    fn an_import_is_bounded() {
        let refused = |text: &str| parse(text, &[]).unwrap_err().to_string();
        let lines = |count: usize| (0..count).map(|n| format!("{n}@b.example\n")).collect::<String>();
        assert_eq!(parse(&lines(5_000), &[]).unwrap().entries.len(), 5_000);
        assert_eq!(parse(&format!("email\n{}", lines(5_000)), &[]).unwrap().entries.len(), 5_000);
        assert_eq!(refused(&lines(5_001)), "csv must have at most 5000 lines");
        assert_eq!(refused(&format!("email\n{}", lines(5_001))), "csv must have at most 5000 lines");
        assert_eq!(refused(&"x".repeat(MAX_IMPORT_BYTES + 1)), "csv must be at most 512 KiB");
        for none in ["", " \n\n", "email", "email,monitors\n"] {
            assert_eq!(refused(none), "csv must have at least one address", "{none:?}");
        }
    }
}
