//! The settings file as a flat list: dotted name, line, and the value as text.

use std::io::{self, Read};
use std::path::Path;

use toml::de::{DeTable, DeValue};

use super::setting_table::{SETTINGS, ValueType};
use super::{ConfigError, ConfigFault};

/// Maximum size of a settings file, in bytes.
const MAX_FILE: u64 = 1 << 20;

/// A value of the file.
#[derive(Debug)]
pub(super) struct SettingsFileEntry {
    /// Dotted name.
    pub(super) name: String,
    /// Line number, from 1.
    pub(super) line: usize,
    /// Value as text, or the rule that its type breaks.
    pub(super) value: Result<String, String>,
}

/// Reads a settings file.
pub(super) fn read(path: &Path) -> Result<Vec<SettingsFileEntry>, ConfigError> {
    let text = read_text(path, MAX_FILE).map_err(|source| ConfigError::Unreadable { path: path.to_owned(), source })?;
    let table = DeTable::parse(&text).map_err(|error| {
        let line = line_of(&text, error.span().map_or(0, |span| span.start));
        let rule = error.message().trim().replace('\n', ", ");
        ConfigError::Invalid(vec![ConfigFault {
            origin: format!("{}:{line}:", path.display()),
            rule,
            is_from_environment: false,
        }])
    })?;
    let mut entries = Vec::new();
    flatten(&text, "", table.get_ref(), &mut entries);
    entries.sort_by_key(|entry| entry.line);
    Ok(entries)
}

/// Reads a text file of at most `limit` bytes.
pub(super) fn read_text(path: &Path, limit: u64) -> io::Result<String> {
    let mut text = String::new();
    std::fs::File::open(path)?.take(limit + 1).read_to_string(&mut text)?;
    if text.len() as u64 > limit {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("is longer than {limit} bytes")));
    }
    Ok(text)
}

fn flatten(text: &str, above: &str, table: &DeTable<'_>, entries: &mut Vec<SettingsFileEntry>) {
    for (key, value) in table {
        let name = if above.is_empty() { key.get_ref().to_string() } else { format!("{above}.{}", key.get_ref()) };
        let line = line_of(text, key.span().start);
        match value.get_ref() {
            DeValue::Table(inner) if !inner.is_empty() || is_section(&name) => {
                flatten(text, &name, inner, entries);
            }
            value => entries.push(SettingsFileEntry { value: scalar_text(&name, value), name, line }),
        }
    }
}

fn is_section(name: &str) -> bool {
    SETTINGS.iter().any(|setting| setting.name.strip_prefix(name).is_some_and(|rest| rest.starts_with('.')))
}

/// Converts a value to the text that a variable would have, if its type fits the setting. Unknown settings get an
/// empty text.
fn scalar_text(name: &str, value: &DeValue<'_>) -> Result<String, String> {
    let value_type = SETTINGS.iter().find(|setting| setting.name == name).map(|setting| setting.value_type);
    match (value_type, value) {
        (None, _) => Ok(String::new()),
        (Some(ValueType::Text), DeValue::String(text)) => Ok(text.to_string()),
        (Some(ValueType::Number), DeValue::Integer(number)) if number.radix() == 10 => Ok(number.as_str().to_owned()),
        (Some(ValueType::Boolean), DeValue::Boolean(is)) => Ok(is.to_string()),
        (Some(ValueType::Boolean), _) => Err("must be true or false".to_owned()),
        (Some(ValueType::Text), _) => Err("must be a string in quotes".to_owned()),
        (Some(ValueType::Number), _) => Err("must be a whole number".to_owned()),
    }
}

fn line_of(text: &str, at: usize) -> usize {
    1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count()
}
