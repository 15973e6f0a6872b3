//! One operation of the API as its description tells of it: what it takes and gives, and the tool that it is for agents.

use ::http::Method;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::http::api::query;
use crate::http::fields::Description;

/// One operation.
#[derive(Debug, Clone)]
pub(in crate::http) struct Operation {
    /// Its name, unique: a verb and a noun.
    pub(in crate::http) id: &'static str,
    /// Its method.
    pub(in crate::http) method: Method,
    /// Its path below `/api/v1`, with names of parts as in the contract.
    pub(in crate::http) path: &'static str,
    /// The resource that it belongs to.
    pub(in crate::http) tag: &'static str,
    /// What it does, in a few words.
    pub(in crate::http) summary: &'static str,
    /// What one has to know beside that.
    pub(in crate::http) about: &'static str,
    /// Parameters of the query.
    pub(in crate::http) query: Vec<Parameter>,
    /// The body that it takes.
    pub(in crate::http) body: Option<Body>,
    /// What it answers when all is well.
    pub(in crate::http) answer: Answer,
    /// Description of the tool, where `about` says more than a model needs.
    pub(in crate::http) note: Option<&'static str>,
    /// People may be told of it by mail.
    pub(in crate::http) tells: bool,
    /// It reaches others than us otherwise: their hosts, name servers or receivers.
    pub(in crate::http) reaches_out: bool,
    /// It replaces something that can't be had back, though it is no change of fields.
    pub(in crate::http) replaces: bool,
    /// It does its work each time that it is asked, so that a request that is sent again is another one.
    pub(in crate::http) each_time: bool,
}

/// How many things a part of a list is asked for.
pub(in crate::http) fn limit() -> Value {
    json!({ "type": "integer", "minimum": 1, "maximum": query::MAX })
}

/// Description of such a parameter.
pub(in crate::http) const LIMIT: &str = "How many at most; 50 unless given.";
const _: () = assert!(query::STANDARD == 50, "as the text says");

/// Things that bodies make and change, by the names under which they are answered.
const WARNED: [&str; 7] = ["page", "monitor", "incident", "deploy", "destination", "subscriber", "alerts"];

/// A parameter of a query.
#[derive(Debug, Clone)]
pub(in crate::http) struct Parameter {
    /// Its name.
    pub(in crate::http) name: &'static str,
    /// What it does.
    pub(in crate::http) about: &'static str,
    /// What it may be.
    pub(in crate::http) schema: Value,
    /// One that it may be.
    pub(in crate::http) example: Value,
}

/// A body: a component of that name.
#[derive(Debug, Clone)]
pub(in crate::http) struct Body {
    /// Its name among the components.
    pub(in crate::http) name: &'static str,
    /// Its schema.
    pub(in crate::http) schema: Map<String, Value>,
}

/// What an operation answers.
#[derive(Debug, Clone)]
pub(in crate::http) struct Answer {
    /// Its status.
    pub(in crate::http) status: u16,
    /// What it means.
    pub(in crate::http) about: &'static str,
    /// Its document: none where it has no body.
    pub(in crate::http) document: Option<Document>,
}

/// A document that is answered: a component of that name.
#[derive(Clone)]
pub(in crate::http) struct Document {
    /// Its name among the components.
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
    /// An operation that answers 200 with nothing said of the document yet.
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

    /// What it does, and of what.
    pub(in crate::http) const fn does(mut self, tag: &'static str, summary: &'static str) -> Self {
        self.tag = tag;
        self.summary = summary;
        self
    }

    /// What one has to know.
    pub(in crate::http) const fn about(mut self, about: &'static str) -> Self {
        self.about = about;
        self
    }

    /// Sets the description of the tool, in place of `about`.
    pub(in crate::http) const fn note(mut self, note: &'static str) -> Self {
        self.note = Some(note);
        self
    }

    /// It reaches others: what is checked, looked up or delivered.
    pub(in crate::http) const fn reaches_out(mut self) -> Self {
        self.reaches_out = true;
        self
    }

    /// It replaces something that can't be had back.
    pub(in crate::http) const fn replaces(mut self) -> Self {
        self.replaces = true;
        self
    }

    /// It mails people unless told not to.
    pub(in crate::http) const fn tells(mut self) -> Self {
        self.tells = true;
        self
    }

    /// It does its work each time, whatever idempotency key comes with it.
    pub(in crate::http) const fn each_time(mut self) -> Self {
        self.each_time = true;
        self
    }

    /// It takes a parameter in its query.
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

    /// It takes a body, whose reader describes it. Defaults stand in the descriptions: generators of clients take a field
    /// with a `default` for one that has to be sent. What is left out of a change keeps its value; there null sets it.
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

    /// Warnings that an answer to a body may have beside its document.
    pub(in crate::http) fn warnings() -> Value {
        json!({
            "type": "array", "items": { "type": "string" },
            "description": "What the sender should know: a field that was ignored since it is a slip, or is sent otherwise. Of a \
                            monitor also that no second network can confirm its failures.",
            "examples": [["group was ignored: send it as groupName"]],
        })
    }

    /// Its body must have that field, which a change may leave out.
    pub(in crate::http) fn requires(mut self, field: &'static str) -> Self {
        if let Some(body) = &mut self.body
            && let Value::Array(required) = body.schema.entry("required").or_insert_with(|| json!([]))
        {
            required.push(json!(field));
        }
        self
    }

    /// Fields of its body may be null, which is to leave them out; in a change they may not.
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

    /// The document stands under a name in an object, which is a component by itself. Warnings
    /// may stand beside what a body makes or changes.
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

    /// The document stands by itself.
    pub(in crate::http) fn gives_bare<T: JsonSchema>(self, name: &'static str, about: &'static str) -> Self {
        self.answers(200, about, Some(Document { name, schema: bare::<T>, field: "", beside: None }))
    }

    /// Its answer may have another field beside the document.
    pub(in crate::http) fn beside(mut self, name: &'static str, schema: Value) -> Self {
        if let Some(document) = &mut self.answer.document {
            document.beside = Some((name, schema));
        }
        self
    }

    /// It answers 204.
    pub(in crate::http) fn gives_nothing(self, about: &'static str) -> Self {
        self.answers(204, about, None)
    }

    fn answers(mut self, status: u16, about: &'static str, document: Option<Document>) -> Self {
        self.answer = Answer { status, about, document };
        self
    }

    /// Whether it changes something.
    pub(in crate::http) fn writes(&self) -> bool {
        !self.method.is_safe()
    }

    /// The names in its path, in their order.
    pub(in crate::http) fn parts(&self) -> impl Iterator<Item = &'static str> {
        self.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
    }
}

impl Document {
    /// Its schema; what it refers to goes into the generator.
    pub(in crate::http) fn schema(&self, generator: &mut SchemaGenerator) -> Value {
        let mut schema = (self.schema)(generator, self.field);
        if let (Some((name, beside)), Some(properties)) = (&self.beside, schema.get_mut("properties")) {
            properties[name] = beside.clone();
        }
        schema
    }
}

/// Puts a field's default into its description.
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
