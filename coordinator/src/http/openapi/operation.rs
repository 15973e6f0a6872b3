//! An operation of the API description: its parameters, body and response, and its MCP tool.

use ::http::Method;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::http::api::query;
use crate::http::fields::Description;

/// An operation of the API.
#[derive(Debug, Clone)]
pub(in crate::http) struct Operation {
    /// Unique name: a verb and a noun.
    pub(in crate::http) id: &'static str,
    /// HTTP method.
    pub(in crate::http) method: Method,
    /// Path below `/api/v1`, with the contract's parameter names.
    pub(in crate::http) path: &'static str,
    /// Resource it belongs to.
    pub(in crate::http) tag: &'static str,
    /// Summary, in a few words.
    pub(in crate::http) summary: &'static str,
    /// Details beyond the summary.
    pub(in crate::http) about: &'static str,
    /// Query parameters.
    pub(in crate::http) query: Vec<Parameter>,
    /// Request body.
    pub(in crate::http) body: Option<Body>,
    /// Response on success.
    pub(in crate::http) answer: Answer,
    /// Description of the MCP tool, if `about` has more than a model needs.
    pub(in crate::http) note: Option<&'static str>,
    /// True if it may send mail to people.
    pub(in crate::http) tells: bool,
    /// True if it reaches external systems: customers' hosts, name servers or receivers.
    pub(in crate::http) reaches_out: bool,
    /// True if it irreversibly replaces something, though it changes no fields.
    pub(in crate::http) replaces: bool,
    /// True if it does its work on every call, so that a repeated request is a new one.
    pub(in crate::http) each_time: bool,
}

/// Returns the schema of a list's `limit` parameter.
pub(in crate::http) fn limit() -> Value {
    json!({ "type": "integer", "minimum": 1, "maximum": query::MAX })
}

/// Description of a list's `limit` parameter.
pub(in crate::http) const LIMIT: &str = "Maximum number of items. Default: 50.";
const _: () = assert!(query::STANDARD == 50, "LIMIT states it");

/// Wrapper names of the resources that bodies create and change.
const WARNED: [&str; 7] = ["page", "monitor", "incident", "deploy", "destination", "subscriber", "alerts"];

/// A query parameter.
#[derive(Debug, Clone)]
pub(in crate::http) struct Parameter {
    /// Parameter name.
    pub(in crate::http) name: &'static str,
    /// Description.
    pub(in crate::http) about: &'static str,
    /// Schema of its value.
    pub(in crate::http) schema: Value,
    /// Example value.
    pub(in crate::http) example: Value,
}

/// A request body, described by the component of that name.
#[derive(Debug, Clone)]
pub(in crate::http) struct Body {
    /// Component name.
    pub(in crate::http) name: &'static str,
    /// Schema.
    pub(in crate::http) schema: Map<String, Value>,
}

/// The response of an operation on success.
#[derive(Debug, Clone)]
pub(in crate::http) struct Answer {
    /// HTTP status.
    pub(in crate::http) status: u16,
    /// Description.
    pub(in crate::http) about: &'static str,
    /// Response document; `None` if there is no body.
    pub(in crate::http) document: Option<Document>,
}

/// A response document, described by the component of that name.
#[derive(Clone)]
pub(in crate::http) struct Document {
    /// Component name.
    pub(in crate::http) name: &'static str,
    schema: fn(&mut SchemaGenerator, &'static str) -> Value,
    field: &'static str,
    beside: Option<(&'static str, Value)>,
}

impl std::fmt::Debug for Document {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Document").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Operation {
    /// Creates an operation that answers 200, without a document yet.
    pub(in crate::http) fn new(id: &'static str, method: Method, path: &'static str) -> Self {
        Self {
            id,
            method,
            path,
            tag: "",
            summary: "",
            about: "",
            query: Vec::new(),
            body: None,
            answer: Answer { status: 200, about: "", document: None },
            note: None,
            tells: false,
            reaches_out: false,
            replaces: false,
            each_time: false,
        }
    }

    /// Sets the tag and the summary.
    pub(in crate::http) const fn does(mut self, tag: &'static str, summary: &'static str) -> Self {
        self.tag = tag;
        self.summary = summary;
        self
    }

    /// Sets the details.
    pub(in crate::http) const fn about(mut self, about: &'static str) -> Self {
        self.about = about;
        self
    }

    /// Sets the description of the MCP tool, which replaces `about` there.
    pub(in crate::http) const fn note(mut self, note: &'static str) -> Self {
        self.note = Some(note);
        self
    }

    /// Marks the operation as reaching external systems by a check, a look-up or a delivery.
    pub(in crate::http) const fn reaches_out(mut self) -> Self {
        self.reaches_out = true;
        self
    }

    /// Marks the operation as irreversibly replacing something.
    pub(in crate::http) const fn replaces(mut self) -> Self {
        self.replaces = true;
        self
    }

    /// Marks the operation as mailing people unless `notify` is false.
    pub(in crate::http) const fn tells(mut self) -> Self {
        self.tells = true;
        self
    }

    /// Marks the operation as doing its work on every call, whatever idempotency key it carries.
    pub(in crate::http) const fn each_time(mut self) -> Self {
        self.each_time = true;
        self
    }

    /// Adds a query parameter.
    pub(in crate::http) fn query(
        mut self,
        name: &'static str,
        about: &'static str,
        schema: Value,
        example: impl Into<Value>,
    ) -> Self {
        self.query.push(Parameter { name, about, schema, example: example.into() });
        self
    }

    /// Sets the request body, which its reader describes. Defaults are put into the descriptions, because client
    /// generators treat a field with a `default` as required. In a PATCH, a field that is left out keeps its value
    /// and null resets it to the default.
    pub(in crate::http) fn takes<T>(
        mut self,
        name: &'static str,
        reader: impl FnOnce(&mut Description) -> T,
    ) -> Self {
        let mut description = Description::default();
        reader(&mut description);
        let mut schema = description.schema();
        let is_change = self.method == Method::PATCH;
        let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
        for property in properties.into_iter().flat_map(Map::values_mut).filter_map(Value::as_object_mut) {
            tell_default(property, is_change);
        }
        self.body = Some(Body { name, schema });
        self
    }

    /// Returns the schema of the warnings that a response to a body may have next to its document.
    pub(in crate::http) fn warnings() -> Value {
        json!({
            "type": "array", "items": { "type": "string" },
            "description": "Notes for the caller: a field that was ignored because its name looks like a typo or is \
                            sent differently. For a monitor also that no second network can confirm its failures.",
            "examples": [["group was ignored: send it as groupName"]],
        })
    }

    /// Makes that field of the body required; in a PATCH it may be left out.
    pub(in crate::http) fn requires(mut self, field: &'static str) -> Self {
        if let Some(body) = &mut self.body
            && let Value::Array(required) = body.schema.entry("required").or_insert_with(|| json!([]))
        {
            required.push(json!(field));
        }
        self
    }

    /// Makes fields of the body nullable, which is the same as leaving them out; in a PATCH they are not nullable.
    pub(in crate::http) fn may_be_null(mut self, fields: &[&str]) -> Self {
        let properties = self.body.as_mut().and_then(|body| body.schema.get_mut("properties"));
        let mut properties = properties.and_then(Value::as_object_mut);
        for field in fields {
            let Some(schema) = properties.as_mut().and_then(|all| all.get_mut(*field)) else { continue };
            schema["type"] = json!([schema["type"], "null"]);
            if let Some(Value::Array(words)) = schema.get_mut("enum") {
                words.push(Value::Null);
            }
        }
        self
    }

    /// Sets the response: an object with the document under the name `field`. The response to a body that creates
    /// or changes a resource may have warnings next to it.
    pub(in crate::http) fn gives<T: JsonSchema>(
        self,
        status: u16,
        name: &'static str,
        field: &'static str,
        about: &'static str,
    ) -> Self {
        let beside = WARNED.contains(&field).then(|| ("warnings", Self::warnings()));
        self.answers(status, about, Some(Document { name, schema: wrapped::<T>, field, beside }))
    }

    /// Sets the response to the document itself.
    pub(in crate::http) fn gives_bare<T: JsonSchema>(self, name: &'static str, about: &'static str) -> Self {
        self.answers(200, about, Some(Document { name, schema: bare::<T>, field: "", beside: None }))
    }

    /// Adds another field next to the document in the response.
    pub(in crate::http) fn beside(mut self, name: &'static str, schema: Value) -> Self {
        if let Some(document) = &mut self.answer.document {
            document.beside = Some((name, schema));
        }
        self
    }

    /// Sets the response to 204, without a body.
    pub(in crate::http) fn gives_nothing(self, about: &'static str) -> Self {
        self.answers(204, about, None)
    }

    fn answers(mut self, status: u16, about: &'static str, document: Option<Document>) -> Self {
        self.answer = Answer { status, about, document };
        self
    }

    /// Returns true if the operation changes something.
    pub(in crate::http) fn writes(&self) -> bool {
        !self.method.is_safe()
    }

    /// Returns the names of its path parameters, in order.
    pub(in crate::http) fn parts(&self) -> impl Iterator<Item = &'static str> {
        self.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
    }
}

impl Document {
    /// Returns the schema of the document; the schemas it refers to are added to the generator.
    pub(in crate::http) fn schema(&self, generator: &mut SchemaGenerator) -> Value {
        let mut schema = (self.schema)(generator, self.field);
        if let (Some((name, beside)), Some(properties)) = (&self.beside, schema.get_mut("properties")) {
            properties[name] = beside.clone();
        }
        schema
    }
}

/// Moves a field's default into its description.
fn tell_default(property: &mut Map<String, Value>, is_change: bool) {
    let Some(default) = property.shift_remove("default") else { return };
    let is_nullable = property.get("type").is_some_and(Value::is_array);
    let verb = match (is_change, is_nullable) {
        (false, _) => "Default:",
        (true, true) => "Null sets",
        (true, false) => return,
    };
    if let Some(Value::String(about)) = property.get_mut("description") {
        let default = default.as_str().map_or_else(|| default.to_string(), str::to_owned);
        about.push_str(&format!(" {verb} {default}."));
    }
}

fn wrapped<T: JsonSchema>(generator: &mut SchemaGenerator, field: &'static str) -> Value {
    let inner = generator.subschema_for::<T>();
    json!({ "type": "object", "required": [field], "properties": { field: inner } })
}

fn bare<T: JsonSchema>(generator: &mut SchemaGenerator, _: &'static str) -> Value {
    T::json_schema(generator).to_value()
}
