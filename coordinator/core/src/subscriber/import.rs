//! Import of subscribers: pasted addresses, one a line, or a CSV file with a header.

use std::collections::{BTreeMap, BTreeSet};

use super::request::{SubscriberAddress, SubscriptionRequest};
use crate::csv::{read_cells, unguarded};
use crate::destination::MASK;
use crate::id::MonitorId;
use crate::incident::MAX_AFFECTED;
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
/// Name of the column with the channel, as exports have it.
const TYPE_COLUMN: &str = "type";
/// Channel that can't be imported.
const WEBHOOK: &str = "webhook";
/// Characters between cells.
const SEPARATORS: [char; 3] = [',', ';', '\t'];
/// Characters between the monitors of a cell.
const BETWEEN_MONITORS: [char; 2] = [';', '|'];

/// The lines of an import.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SubscriberImport {
    /// Addresses, one of each mailbox: the first spelling.
    pub entries: Vec<ImportEntry>,
    /// Lines whose mailbox stands on an earlier line.
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
    /// Its address, if only the rest of the line breaks a rule.
    pub address: Option<SubscriberAddress>,
}

/// Positions of the columns in a line.
struct Columns {
    separator: Option<char>,
    address: usize,
    kind: Option<usize>,
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
    let columns = header.unwrap_or(Columns { separator: None, address: 0, kind: None, monitors: None });
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
            Ok(entry) if known.insert(entry.address.mailbox_key()) => import.entries.push(entry),
            Ok(_) => import.repeated += 1,
            Err((rule, address)) => import.refused.push(RefusedLine { line, rule, address }),
        }
    }
    Ok(import)
}

impl Columns {
    /// Reads the first line as names of columns; `None` if it is none.
    fn of_header(line: &str) -> Option<Self> {
        let separators = SEPARATORS.into_iter().map(Some).chain([None]);
        separators.into_iter().find_map(|separator| {
            let cells = read_cells(line, separator).ok()?;
            let names: Vec<String> = cells.iter().map(|cell| cell.trim().to_lowercase()).collect();
            let column = |name: &str| names.iter().position(|it| it == name);
            let address = names.iter().position(|name| ADDRESS_COLUMNS.contains(&name.as_str()))?;
            Some(Self { separator, address, kind: column(TYPE_COLUMN), monitors: column(MONITORS_COLUMN) })
        })
    }

    /// Reads a line. A refusal has the rule, and the address if that is valid.
    fn read(&self, line: &str, monitors: &MonitorNames<'_>) -> Result<ImportEntry, (Rule, Option<SubscriberAddress>)> {
        let cells = match self.separator {
            Some(separator) => read_cells(line, Some(separator)),
            None => read_cells(line.trim().trim_end_matches(SEPARATORS), None),
        };
        let cells = cells.map_err(|rule| (rule, None))?;
        let cell = |column: usize| cells.get(column).map_or("", |cell| unguarded(cell.trim()));
        let address = read_address(cell(self.address), self.kind.map_or("", cell)).map_err(|rule| (rule, None))?;
        match self.monitors.map_or("", cell) {
            "" => Ok(ImportEntry { address, monitors: None }),
            names => match monitors.find(names) {
                Ok(monitors) => Ok(ImportEntry { address, monitors: Some(monitors) }),
                Err(rule) => Err((rule, Some(address))),
            },
        }
    }
}

/// Reads an address; `kind` is its channel as exports name it, empty if the text has none.
fn read_address(text: &str, kind: &str) -> Result<SubscriberAddress, Rule> {
    if kind.eq_ignore_ascii_case(WEBHOOK) {
        return Err("is a webhook: it subscribes on the page itself".to_owned());
    }
    // A mask has only characters that an address may have.
    if text.contains(MASK) {
        return Err("is masked: export the list as an owner, or with a write key".to_owned());
    }
    let request = SubscriptionRequest { email: Some(text.to_owned()), url: None, monitors: None };
    let valid = request.validate(&BTreeSet::new(), &|_| None);
    valid.map(|valid| valid.address).map_err(|_| "must be an email address".to_owned())
}

/// Names of a page's monitors by which an import finds them again: the name, or the id where the name is not enough.
#[derive(Debug)]
pub struct MonitorLabels(BTreeMap<MonitorId, String>);

impl MonitorLabels {
    /// Labels of the page's monitors: id and name.
    pub fn of(on_page: &[(MonitorId, String)]) -> Self {
        let names = MonitorNames::of(on_page);
        Self(on_page.iter().map(|(id, name)| (*id, names.label(*id, name))).collect())
    }

    /// Writes the cell of a subscriber with these monitors. Those that are not on the page are left out; `None` if none
    /// is left.
    pub fn cell(&self, ids: &[MonitorId]) -> Option<String> {
        let labels: Vec<&str> = ids.iter().filter_map(|id| self.0.get(id)).map(String::as_str).collect();
        (!labels.is_empty()).then(|| labels.join("; "))
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

    /// Returns the name of a monitor if a cell with it means this monitor, and its id otherwise.
    fn label(&self, id: MonitorId, name: &str) -> String {
        let is_enough = self.names.get(&name.trim().to_lowercase()) == Some(&Some(id))
            && !name.contains(BETWEEN_MONITORS)
            && !name.trim().is_empty()
            && name.parse::<MonitorId>().is_err();
        if is_enough { name.to_owned() } else { id.to_string() }
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
        match found.len() {
            0 => Err("must name at least one monitor".to_owned()),
            1..=MAX_AFFECTED => Ok(found.into_iter().collect()),
            _ => Err(format!("must name at most {MAX_AFFECTED} monitors")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::csv::write_cell;

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
        for text in ["a@b.example\nA@b.example", "a@b.example\na+x@B.example", "a.b@gmail.com\nab+1@googlemail.com"] {
            let import = parse(text, &[]).unwrap();
            assert_eq!((import.entries.len(), import.repeated), (1, 1), "one mailbox is asked once: {text}");
        }
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
    fn an_export_is_read_again() {
        let on_page = ["Cart", "API, EU", "Twin", "twin", "a; b", "=1"];
        let on_page: Vec<_> = (1..).map(MonitorId::from_u128).zip(on_page.map(str::to_owned)).collect();
        let labels = MonitorLabels::of(&on_page);
        for (id, name) in &on_page {
            let ids = vec![*id, MonitorId::from_u128(1)];
            let cell = write_cell(&labels.cell(&ids).unwrap());
            let import = parse(&format!("address,type,monitors\nann@example.com,email,{cell}"), &on_page).unwrap();
            let expected: BTreeSet<MonitorId> = ids.into_iter().collect();
            assert_eq!(import.refused, [], "{name}: {cell}");
            assert_eq!(import.entries[0].monitors, Some(expected.into_iter().collect()), "{name}: {cell}");
        }
        assert_eq!(labels.cell(&[MonitorId::from_u128(9)]), None, "it was deleted");
        let import = parse(
            "address,type,state,since,monitors\nhooks.example,webhook,confirmed,,\na***@example.com,email,confirmed,,\n\
             ann@example.com,email,confirmed,,(deleted)",
            &on_page,
        );
        let refused = import.unwrap().refused;
        let lines: Vec<_> = refused.iter().map(|it| (it.line, it.rule.as_str(), it.address.is_some())).collect();
        assert_eq!(
            lines,
            [
                (2, "is a webhook: it subscribes on the page itself", false),
                (3, "is masked: export the list as an owner, or with a write key", false),
                (4, "names a monitor that is not on this page", true),
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
        let wide = parse(&format!("email,x\na@b.example{}", ",".repeat(100)), &[]).unwrap();
        assert_eq!(wide.refused[0].rule, "must have at most 100 cells");
        let many: Vec<_> = (0..=MAX_AFFECTED as u128).map(|n| (MonitorId::from_u128(n), format!("m{n}"))).collect();
        let names: Vec<&str> = many.iter().map(|(_, name)| name.as_str()).collect();
        let all = parse(&format!("email,monitors\na@b.example,{}", names.join(";")), &many).unwrap();
        assert_eq!(all.refused[0].rule, "must name at most 1000 monitors");
        for none in ["", " \n\n", "email", "email,monitors\n"] {
            assert_eq!(refused(none), "csv must have at least one address", "{none:?}");
        }
    }
}
