//! Forms read as API bodies: a form's fields have the names of the API's fields, and the API's readers and rules check
//! both.
//!
//! A form sends texts alone, so a value gets its type from the field that is read. Every choice that may be left
//! empty has a hidden field of the same name before it: `false` for a tick, nothing for a list. So a field that the form
//! doesn't have (absent) differs from one that was emptied.
//!
//! | field | in the form |
//! | --- | --- |
//! | text, number | the last value of that name; empty is null, or missing where null is not allowed |
//! | true or false | the last value of that name |
//! | list of texts | all values of that name that aren't empty |
//! | list of objects | the same; a value has the object's members in their order, separated by spaces |
//! | file (`multipart/form-data`) | a `data:` URL of its media type; absent where none was chosen |
//! | length (`periodMinutes`) | a number as `period`, and the minutes of its unit as `periodUnit` |
//! | map | `name[key]` with the value, or pairs of `name.key` and `name.value`; rows without a value are left out |
//!
//! A form that changes something carries a fingerprint of each value that it was drawn with ([`LOADED`]). A field counts
//! as changed if the person changed it; if someone else did so meanwhile too, that is a conflict.

mod fingerprints;
mod refusal;

use std::collections::BTreeMap;
use std::str::FromStr;

use parallax_core::patch::PatchField;
use parallax_core::validation::ValidationErrors;
use parallax_service::idempotency::IdempotencyKey;
use serde_json::{Value, json};

pub(in crate::http) use self::fingerprints::loaded;
use self::fingerprints::{comparable, fingerprint, parse_loaded};
pub(in crate::http) use self::refusal::{FormRefusal, FormStatus, Saved, faults, lower_first, result_path, saved};
use super::{SignedIn, form_encoding};
use crate::http::body_fields::{BodyFields, FieldKind, FieldSpec, read_value};
use crate::http::error::ApiError;
use crate::http::json_body::{self, JsonObject};
use crate::http::routed_request::RoutedRequest;
use crate::views::dashboard::form::{FieldFault, FormView};

/// Characters of another person's value that a conflict repeats.
const MAX_QUOTED: usize = 200;

/// Hidden field with the fingerprints of the values that a form was drawn with.
pub(in crate::http) const LOADED: &str = "loaded";
/// Hidden field with the idempotency key of a form, so that a double click makes one thing.
pub(in crate::http) const ONCE: &str = "idempotency_key";
/// Hidden field with the token that binds a form to the session.
pub(super) const FORM_TOKEN: &str = "form_token";

/// A submitted form: names and values in the order in which they were sent.
#[derive(Debug, Clone, Default)]
pub(in crate::http) struct Form(Vec<(String, String)>);

impl Form {
    /// Parses a query like a form.
    ///
    /// # Errors
    /// If it has too many fields.
    pub(in crate::http) fn parse(query: &[u8]) -> Result<Self, ValidationErrors> {
        form_encoding::parse_urlencoded(query).map(Self)
    }

    /// Makes a form of the given values, such as those of a record.
    pub(in crate::http) fn of<N: Into<String>, V: Into<String>>(values: impl IntoIterator<Item = (N, V)>) -> Self {
        Self(values.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }

    /// Returns true if it has no fields.
    pub(in crate::http) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if the form has a field of that name.
    pub(in crate::http) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(field, _)| field == name)
    }

    /// Returns the last value of that name as typed; empty if there is none.
    pub(in crate::http) fn text(&self, name: &str) -> &str {
        self.0.iter().rfind(|(field, _)| field == name).map_or("", |(_, value)| value)
    }

    /// Returns true if the tick of that name is set.
    pub(in crate::http) fn is_on(&self, name: &str) -> bool {
        self.text(name) == "true"
    }

    /// Returns all values of that name that aren't empty.
    pub(in crate::http) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(field, value)| field == name && !value.trim().is_empty()).map(|(_, value)| &**value)
    }

    /// Replaces all values of a name by one.
    pub(in crate::http) fn set(&mut self, name: &str, value: impl Into<String>) {
        self.remove(name);
        self.0.push((name.to_owned(), value.into()));
    }

    /// Adds a value to those of a name.
    pub(in crate::http) fn add(&mut self, name: &str, value: impl Into<String>) {
        self.0.push((name.to_owned(), value.into()));
    }

    /// Keeps the fields of those names, and the hidden ones.
    pub(in crate::http) fn keep(&mut self, names: &[&str]) {
        let is_kept = |name: &str| names.contains(&name) || [LOADED, ONCE, FORM_TOKEN].contains(&name);
        self.0.retain(|(name, _)| is_kept(name));
    }

    /// Removes a field.
    pub(in crate::http) fn remove(&mut self, name: &str) {
        self.0.retain(|(field, _)| field != name);
    }

    /// Returns the form as it is drawn: with what was typed, and the token of the session. It keeps its idempotency key,
    /// or gets one.
    pub(in crate::http) fn view(&self, form_token: &str) -> FormView {
        let sent = Some(self.text(ONCE)).filter(|once| !once.is_empty());
        let is_typed = sent.is_some();
        let once = sent.map_or_else(new_key, str::to_owned);
        let is_hidden = |name: &str| [LOADED, ONCE, FORM_TOKEN].contains(&name);
        let values = self.0.iter().filter(|(name, _)| !is_hidden(name)).cloned().collect();
        let mut view = FormView::new(form_token.to_owned(), once, self.text(LOADED).to_owned(), values);
        view.is_typed = is_typed;
        view
    }

    /// Returns the form as it is drawn, with the reasons if it was refused, and the status of the reply.
    pub(in crate::http) fn drawn(&self, form_token: &str, refusal: Option<FormRefusal>) -> (FormView, FormStatus) {
        let mut view = self.view(form_token);
        let status = refusal.map_or(FormStatus::OK, |refusal| refusal.apply(&mut view));
        (view, status)
    }

    /// Returns the refused form as it is drawn again: with what the person typed, and with the newest values of the
    /// fields that they left alone. `current` has the record's values, and `stored` is the form as it is drawn of them.
    /// Saving it again keeps what was typed, also of the fields in conflict, and changes nothing else.
    pub(in crate::http) fn redrawn(mut self, refusal: &FormRefusal, current: &JsonObject, stored: &Self) -> Self {
        let text = self.text(LOADED).to_owned();
        let mut drawn = parse_loaded(&text);
        let fresh: BTreeMap<&str, String> =
            current.iter().map(|(name, value)| (name.as_str(), fingerprint(name, value))).collect();
        for conflict in refusal.conflicts() {
            // Without a fingerprint, what is typed counts as a change.
            match fresh.get_key_value(conflict) {
                Some((name, now)) => drawn.insert(*name, now.as_str()),
                None => drawn.remove(conflict),
            };
        }
        for (name, now) in &fresh {
            // Someone else alone changed it, as it is no conflict. A form may have the field under no name of its own.
            let is_renewed = drawn.get(name).is_some_and(|before| **before != **now) && self.replace(name, stored);
            if is_renewed {
                drawn.insert(*name, now.as_str());
            }
        }
        let drawn = drawn.iter().map(|(name, print)| format!("{name}={print}")).collect::<Vec<_>>().join(" ");
        self.set(LOADED, drawn);
        self
    }

    /// Replaces the values of a field by those of another form; returns false if the form doesn't have it.
    fn replace(&mut self, name: &str, other: &Self) -> bool {
        let has_field = self.0.iter().any(|(field, _)| is_part_of(field, name));
        if has_field {
            self.0.retain(|(field, _)| !is_part_of(field, name));
            self.0.extend(other.0.iter().filter(|(field, _)| is_part_of(field, name)).cloned());
        }
        has_field
    }

    /// Reads an id, such as a filter of the query; empty means none.
    ///
    /// # Errors
    /// If it isn't an id.
    pub(in crate::http) fn id<T: FromStr>(&self, name: &str) -> Result<Option<T>, ValidationErrors> {
        match self.text(name) {
            "" => Ok(None),
            text => text.parse().map(Some).map_err(|_| ValidationErrors::single(name, "must be an id")),
        }
    }

    /// Converts a field to the JSON value that the API would get; `None` if the form doesn't have it.
    fn value(&self, field: &FieldSpec, kind: &FieldKind, changes: bool) -> Option<Value> {
        match kind {
            FieldKind::Text => self.scalar(field, changes, |text| json!(text)),
            FieldKind::Integer => self.scalar(field, changes, |text| number(text, |text| text.parse::<i64>().ok())),
            FieldKind::Number => self.scalar(field, changes, |text| number(text, |text| text.parse::<f64>().ok())),
            FieldKind::Boolean => self.scalar(field, changes, |text| match text {
                "true" => json!(true),
                "false" => json!(false),
                other => json!(other),
            }),
            FieldKind::List(items) => self.has(field.name()).then(|| {
                let list: Vec<Value> = self.all(field.name()).map(|text| list_item(text, items)).collect();
                if list.is_empty() && field.is_nullable() { Value::Null } else { Value::Array(list) }
            }),
            FieldKind::Map(values) => self.map(field, values),
            // No form has an object as a field: the requests that do are for programs.
            FieldKind::Object(_) => None,
        }
    }

    fn scalar(&self, field: &FieldSpec, changes: bool, convert: impl FnOnce(&str) -> Value) -> Option<Value> {
        let text = self.has(field.name()).then(|| self.text(field.name()))?;
        match text.trim().is_empty() {
            true if field.is_nullable() => Some(Value::Null),
            // Left out of a new record: it "is required". Emptied in an existing one: its own rule refuses that.
            true => changes.then(|| json!("")),
            false => Some(convert(text)),
        }
    }

    fn map(&self, field: &FieldSpec, values: &Value) -> Option<Value> {
        let name = field.name();
        let bracketed = self.0.iter().filter_map(|(full_name, value)| {
            let key = full_name.strip_prefix(name)?.strip_prefix('[')?.strip_suffix(']')?;
            Some((key, value.as_str()))
        });
        let (key_name, value_name) = (format!("{name}.key"), format!("{name}.value"));
        let named =
            |wanted: String| self.0.iter().filter(move |(field, _)| *field == wanted).map(|(_, value)| &**value);
        let pairs: Vec<(&str, &str)> = named(key_name).zip(named(value_name)).collect();
        if !self.has(name) && pairs.is_empty() && bracketed.clone().next().is_none() {
            return None;
        }
        let is_number = values.get("type").is_some_and(|kind| kind == "integer");
        let mut map = JsonObject::new();
        for (key, value) in bracketed.chain(pairs).filter(|(key, value)| !key.trim().is_empty() || !value.is_empty()) {
            let value = value.trim();
            if value.is_empty() && is_number {
                continue;
            }
            let item = if is_number { number(value, |text| text.parse::<i64>().ok()) } else { json!(value) };
            if map.insert(key.trim().to_owned(), item).is_some() {
                // Not a map: the reader reports its rule.
                return Some(json!(format!("{key} twice")));
            }
        }
        if map.is_empty() && field.is_nullable() { Some(Value::Null) } else { Some(Value::Object(map)) }
    }
}

/// Returns true for the name that a field has in the form: its own, one of a part of it, or those of a length, which is
/// typed as a number and its unit.
fn is_part_of(in_form: &str, name: &str) -> bool {
    let of_it = in_form.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(['[', '.']));
    let of_length = |length: &str| in_form == length || in_form.strip_suffix("Unit") == Some(length);
    of_it || name.strip_suffix("Minutes").is_some_and(of_length)
}

/// Converts a typed number; text that isn't one stays text, which the field's reader refuses.
fn number<N: Into<Value>>(text: &str, parse: impl FnOnce(&str) -> Option<N>) -> Value {
    parse(text.trim()).map_or_else(|| json!(text), Into::into)
}

/// Converts an entry of a list: a text, or an object whose members are separated by spaces.
fn list_item(text: &str, items: &Value) -> Value {
    match items.get("properties").and_then(Value::as_object) {
        None => json!(text),
        Some(members) => {
            let pairs = members.keys().zip(text.split_whitespace());
            Value::Object(pairs.map(|(name, word)| (name.clone(), json!(word))).collect())
        }
    }
}

/// A submitted form with the identity by which a repetition is recognized.
#[derive(Debug)]
pub(in crate::http) struct SubmittedForm {
    /// Fields.
    pub(in crate::http) form: Form,
    /// Identity of the request: the form's key, and what it does.
    pub(in crate::http) idempotency_key: Option<IdempotencyKey>,
}

impl SubmittedForm {
    /// Takes the form of a request of a signed-in person. Its body is parsed here only if its token came in a header.
    ///
    /// # Errors
    /// If the body can't be read, or is too large.
    pub(in crate::http) async fn read(call: &mut RoutedRequest<SignedIn>) -> Result<Self, ApiError> {
        let form = match call.form.take() {
            Some(fields) => Form(fields),
            None => {
                let body = json_body::read_bytes_to(&call.path, &call.headers, &mut call.body).await?;
                Form(form_encoding::parse(&call.headers, &body).await?)
            }
        };
        let idempotency_key = Some(form.text(ONCE)).filter(|key| !key.is_empty()).map(|key| {
            // Not the form token: the same form may be sent again after another sign-in.
            let fields = form.0.iter().filter(|(name, _)| name != FORM_TOKEN);
            let fields = fields.flat_map(|(name, value)| [name.as_bytes(), value.as_bytes()]);
            let request: Vec<&[u8]> =
                [call.method.as_str().as_bytes(), call.path.as_bytes()].into_iter().chain(fields).collect();
            IdempotencyKey::new(call.caller.caller.limit_id(), key, &request)
        });
        Ok(Self { form, idempotency_key })
    }
}

/// The fields of a form: those of a new record, or of one that is changed.
#[derive(Debug)]
pub(in crate::http) struct FormBody<'a> {
    form: &'a Form,
    current: Option<&'a JsonObject>,
    loaded: BTreeMap<&'a str, &'a str>,
    conflicts: Vec<FieldFault>,
}

impl<'a> FormBody<'a> {
    /// Reads a form that makes something new.
    pub(in crate::http) const fn new(form: &'a Form) -> Self {
        Self { form, current: None, loaded: BTreeMap::new(), conflicts: Vec::new() }
    }

    /// Reads a form that changes a record, of which `current` has the values as the API's body would. A field that the
    /// person left alone is absent.
    pub(in crate::http) fn change(form: &'a Form, current: &'a JsonObject) -> Self {
        Self { form, current: Some(current), loaded: parse_loaded(form.text(LOADED)), conflicts: Vec::new() }
    }

    /// Returns the fields that someone else changed since the form was drawn, with what they are now.
    pub(in crate::http) fn into_conflicts(self) -> Vec<FieldFault> {
        self.conflicts
    }

    /// Decides which of three values counts: the one that the form was drawn with, the current one, or the typed one.
    fn is_change(&mut self, name: &'static str, typed: &Value) -> bool {
        let Some(current) = self.current else { return true };
        let current = current.get(name).unwrap_or(&Value::Null);
        if comparable(name, typed) == comparable(name, current) {
            return false;
        }
        let Some(loaded) = self.loaded.get(name) else { return true };
        if *loaded == fingerprint(name, typed) {
            return false;
        }
        let is_conflict = *loaded != fingerprint(name, current);
        if is_conflict {
            self.conflicts.push(FieldFault { field: name.to_owned(), text: conflict_text(current) });
        }
        !is_conflict
    }
}

impl BodyFields for FormBody<'_> {
    fn take<T>(
        &mut self,
        field: FieldSpec,
        kind: FieldKind,
        rule: &str,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> PatchField<T> {
        match self.form.value(&field, &kind, self.current.is_some()) {
            Some(typed) if self.is_change(field.name(), &typed) => read_value(&typed, rule, read),
            _ => PatchField::Absent,
        }
    }
}

/// Reads the edit that a form makes of a record, whose values are `current`.
///
/// # Errors
/// If someone else changed the same fields meanwhile.
pub(in crate::http) fn changed<T>(
    form: &Form,
    current: &JsonObject,
    read: impl FnOnce(&mut FormBody<'_>) -> T,
) -> Result<T, FormRefusal> {
    let mut fields = FormBody::change(form, current);
    let edit = read(&mut fields);
    let conflicts = fields.into_conflicts();
    if conflicts.is_empty() { Ok(edit) } else { Err(FormRefusal::conflict(conflicts)) }
}

/// Makes an idempotency key for a new form.
pub(in crate::http) fn new_key() -> String {
    hex::encode(rand::random::<[u8; 16]>())
}

fn conflict_text(current: &Value) -> String {
    let shown = match current {
        Value::Null => Some("nothing".to_owned()),
        Value::Bool(is_on) => Some(if *is_on { "on" } else { "off" }.to_owned()),
        Value::Number(number) => Some(number.to_string()),
        Value::String(text) if text.chars().count() <= MAX_QUOTED => Some(format!("“{text}”")),
        Value::String(_) | Value::Array(_) | Value::Object(_) => None,
    };
    match shown {
        Some(shown) => format!("Someone else set this to {shown} meanwhile. Save again to keep yours."),
        None => "Someone else changed this meanwhile. Save again to keep yours.".to_owned(),
    }
}

#[cfg(test)]
mod tests;
