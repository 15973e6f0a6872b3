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
//! | map | `name[key]` with the value, or pairs of `name.key` and `name.value`; rows without a value are left out |
//!
//! A form that changes something carries a fingerprint of each value that it was drawn with ([`LOADED`]). A field counts
//! as changed if the person changed it; if someone else did so meanwhile too, that is a conflict.

use std::collections::BTreeMap;

use ::http::StatusCode;
use parallax_core::patch::PatchField;
use parallax_core::validation::ValidationErrors;
use parallax_service::ServiceError;
use parallax_service::idempotency::{IdempotencyKey, RequestOutcome};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{SignedIn, form_encoding};
use crate::http::body_fields::{BodyFields, FieldKind, FieldSpec, read_value};
use crate::http::error::ApiError;
use crate::http::json_body::{self, JsonObject};
use crate::http::routed_request::RoutedRequest;
use crate::views::dashboard::form::{FieldFault, FormView};

/// Bytes of a value's fingerprint.
const FINGERPRINT: usize = 8;
/// Characters of another person's value that a conflict repeats.
const MAX_QUOTED: usize = 200;

/// Reason for refusing a form whose key was used with other values.
const ALREADY_SENT: &str = "This form was already sent, with other values. Reload the page to see the result.";

/// Hidden field with the fingerprints of the values that a form was drawn with.
pub(in crate::http) const LOADED: &str = "loaded";
/// Hidden field with the idempotency key of a form, so that a double click makes one thing.
pub(in crate::http) const ONCE: &str = "idempotency_key";
/// Hidden field with the token that binds a form to the session.
const FORM_TOKEN: &str = "form_token";

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
        let once = Some(self.text(ONCE)).filter(|once| !once.is_empty());
        let once = once.map_or_else(|| hex::encode(rand::random::<[u8; 16]>()), str::to_owned);
        let is_hidden = |name: &str| [LOADED, ONCE, FORM_TOKEN].contains(&name);
        let values = self.0.iter().filter(|(name, _)| !is_hidden(name)).cloned().collect();
        FormView::new(form_token.to_owned(), once, self.text(LOADED).to_owned(), values)
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
    /// Reads the body of a request of a signed-in person.
    ///
    /// # Errors
    /// If the body can't be read, or is too large.
    pub(in crate::http) async fn read(call: &mut RoutedRequest<SignedIn>) -> Result<Self, ApiError> {
        let body = json_body::read_bytes(&call.headers, &mut call.body).await?;
        let form = Form(form_encoding::parse(&call.headers, &body).await?);
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

/// Returns where a form leads: to `path` of what it made. A repetition leads to the same place.
pub(in crate::http) fn result_path<T>(outcome: RequestOutcome<T>, path: impl Fn(&T) -> String) -> String {
    match outcome {
        RequestOutcome::Fresh(value) | RequestOutcome::Reread(value) => path(&value),
        RequestOutcome::Replayed(path) => String::from_utf8_lossy(&path).into_owned(),
    }
}

/// Outcome of a form: the address that it leads to, or the reasons to draw it again; or an error with a page of its own.
pub(in crate::http) type Saved = Result<Result<String, FormRefusal>, ApiError>;

/// A form that was refused: it is drawn again, with what was typed and the reasons.
#[derive(Debug)]
pub(in crate::http) struct FormRefusal {
    /// Status of the reply.
    pub(in crate::http) status: StatusCode,
    /// Faults of its fields.
    pub(in crate::http) faults: Vec<FieldFault>,
    /// Reason that is not about a field.
    pub(in crate::http) problem: Option<String>,
}

impl FormRefusal {
    /// Converts an error of the services.
    ///
    /// # Errors
    /// The error itself, if it isn't about what the form holds: it is a page of its own.
    pub(in crate::http) fn of(error: ServiceError) -> Result<Self, ApiError> {
        use ServiceError as E;
        let message = error.to_string();
        let (faults, problem) = match &error {
            E::Invalid(errors) => (faults(errors), None),
            E::IdempotencyKeyReused => (Vec::new(), Some(ALREADY_SENT.to_owned())),
            E::NotFound | E::Unauthenticated | E::ReadOnly | E::RoleForbids { .. } | E::Internal(_) | E::DiskFull => {
                return Err(error.into());
            }
            _ => (Vec::new(), Some(FieldFault::sentence(&message))),
        };
        Ok(Self { status: ApiError::from(error).into_response().status(), faults, problem })
    }

    /// Makes the refusal of a form with fields that someone else changed meanwhile.
    pub(in crate::http) const fn conflict(faults: Vec<FieldFault>) -> Self {
        Self { status: StatusCode::CONFLICT, faults, problem: None }
    }

    /// Writes the reasons into the form.
    pub(in crate::http) fn apply(self, form: &mut FormView) -> StatusCode {
        form.faults = self.faults;
        form.problem = self.problem;
        self.status
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
        let loaded = form.text(LOADED).split(' ').filter_map(|field| field.split_once('=')).collect();
        Self { form, current: Some(current), loaded, conflicts: Vec::new() }
    }

    /// Returns the fields that someone else changed since the form was drawn, with what they are now.
    pub(in crate::http) fn into_conflicts(self) -> Vec<FieldFault> {
        self.conflicts
    }

    /// Decides which of three values counts: the one that the form was drawn with, the current one, or the typed one.
    fn is_change(&mut self, name: &'static str, typed: &Value) -> bool {
        let Some(current) = self.current else { return true };
        let current = current.get(name).unwrap_or(&Value::Null);
        if typed == current {
            return false;
        }
        let Some(loaded) = self.loaded.get(name) else { return true };
        if *loaded == fingerprint(typed) {
            return false;
        }
        let is_conflict = *loaded != fingerprint(current);
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

/// Returns the fingerprints of a record's values, for [`LOADED`].
pub(in crate::http) fn loaded(current: &JsonObject) -> String {
    let fields = current.iter().map(|(name, value)| format!("{name}={}", fingerprint(value)));
    fields.collect::<Vec<_>>().join(" ")
}

fn fingerprint(value: &Value) -> String {
    let digest = Sha256::digest(value.to_string().as_bytes());
    hex::encode(digest.iter().copied().take(FINGERPRINT).collect::<Vec<u8>>())
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

/// Converts validation errors to texts under their fields.
pub(in crate::http) fn faults(errors: &ValidationErrors) -> Vec<FieldFault> {
    let fault = |error: &parallax_core::validation::FieldError| FieldFault {
        field: error.field.clone(),
        text: FieldFault::sentence(&error.rule),
    };
    errors.iter().map(fault).collect()
}

#[cfg(test)]
mod tests;
