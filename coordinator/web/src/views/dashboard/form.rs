//! A form of the dashboard as its template draws it: with what was typed, and the faults under their fields.

use parallax_core::validation::WHOLE_REQUEST;

/// A form as it is drawn.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FormView {
    /// Token that binds it to the session.
    pub token: String,
    /// Idempotency key, so that a double click makes one thing.
    pub once: String,
    /// Fingerprints of the values that it was first drawn with.
    pub loaded: String,
    /// Faults of its fields.
    pub faults: Vec<FieldFault>,
    /// Reason that it was refused as a whole, as a sentence.
    pub problem: Option<String>,
    /// True if it has what was typed and not saved: it was sent, and is drawn as the answer.
    pub is_typed: bool,
    values: Vec<(String, String)>,
}

/// A field with the reason that it was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FieldFault {
    /// Field name; a path if it is nested.
    pub field: String,
    /// Reason, as a sentence.
    pub text: String,
}

impl FieldFault {
    /// Writes a rule or a message as a sentence: "Must be 1 to 80 characters." An empty one stays empty.
    pub(crate) fn sentence(rule: &str) -> String {
        let mut letters = rule.chars();
        let Some(first) = letters.next() else { return String::new() };
        let stop = if rule.ends_with(['.', '!', '?']) { "" } else { "." };
        format!("{}{}{stop}", first.to_uppercase(), letters.as_str())
    }

    /// Returns true if the fault is of that field, or of something in it.
    fn is_in(&self, name: &str) -> bool {
        self.field.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(['[', '.']))
    }

    /// Name of the field on the form: without what is inside it.
    pub(crate) fn anchor(&self) -> &str {
        self.field.split(['[', '.']).next().unwrap_or_default()
    }
}

impl FormView {
    /// Makes the view of a form with those values.
    pub(crate) const fn new(token: String, once: String, loaded: String, values: Vec<(String, String)>) -> Self {
        Self { token, once, loaded, faults: Vec::new(), problem: None, is_typed: false, values }
    }

    /// Returns the mark of a form whose unsaved changes the script guards: `typed` if it was drawn with some.
    pub(crate) const fn guard(&self) -> &'static str {
        if self.is_typed { "typed" } else { "" }
    }

    /// Returns the value of a field; empty if it has none.
    pub(crate) fn value(&self, name: &str) -> &str {
        self.values.iter().rfind(|(field, _)| field == name).map_or("", |(_, value)| value)
    }

    /// Returns all values of that name.
    pub(crate) fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.values.iter().filter(move |(field, _)| field == name).map(|(_, value)| value.as_str())
    }

    /// Returns true if that value is one of the field's.
    pub(crate) fn is_chosen(&self, name: &str, value: &str) -> bool {
        self.values(name).any(|it| it == value)
    }

    /// Returns true if one of the field's values is those two words.
    pub(crate) fn is_chosen_pair(&self, name: &str, first: &str, second: &str) -> bool {
        self.values(name).any(|value| value.split_once(' ') == Some((first, second)))
    }

    /// Returns true if that value is the last one of the field.
    pub(crate) fn is_value(&self, name: &str, value: &str) -> bool {
        self.value(name) == value
    }

    /// Returns true if the tick of that name is set.
    pub(crate) fn is_on(&self, name: &str) -> bool {
        self.is_value(name, "true")
    }

    /// Returns the fault of a field; empty if it has none.
    pub(crate) fn fault(&self, name: &str) -> &str {
        self.faults.iter().find(|fault| fault.is_in(name)).map_or("", |fault| fault.text.as_str())
    }

    /// Returns true if one of those fields has a fault, so that what holds them is drawn open.
    pub(crate) fn has_fault(&self, names: &[&str]) -> bool {
        names.iter().any(|name| !self.fault(name).is_empty())
    }

    /// Returns the fields with faults, each with its label and in the order of the labels, for the summary on top.
    pub(crate) fn fault_links(&self, labels: &[(&'static str, &'static str)]) -> Vec<(String, String)> {
        let label = |fault: &FieldFault| labels.iter().find(|(name, _)| fault.is_in(name)).map(|(_, label)| *label);
        let link = |fault: &FieldFault| (fault.anchor().to_owned(), label(fault).unwrap_or(&fault.field).to_owned());
        let place = |fault: &FieldFault| labels.iter().position(|(name, _)| fault.is_in(name)).unwrap_or(labels.len());
        let mut faults: Vec<&FieldFault> = self.faults.iter().collect();
        faults.sort_by_key(|fault| place(fault));
        faults.into_iter().map(link).collect()
    }

    /// Returns the faults of fields that the form does not have, as sentences with the field's name.
    pub(crate) fn other_faults(&self, labels: &[(&'static str, &'static str)]) -> Vec<String> {
        let is_shown = |fault: &&FieldFault| labels.iter().any(|(name, _)| fault.is_in(name));
        let others = self.faults.iter().filter(|fault| !is_shown(fault));
        others
            .map(|fault| {
                if fault.field == WHOLE_REQUEST {
                    fault.text.clone()
                } else {
                    format!("{}: {}", fault.field, fault.text)
                }
            })
            .collect()
    }

    /// Returns all faults as sentences, for a button that has no fields.
    pub(crate) fn reasons(&self) -> Vec<String> {
        self.other_faults(&[])
    }
}
