//! An operation of the API description: its parameters, body and response, and its MCP tool.

use ::http::Method;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::http::api::query_params;
use crate::http::body_fields::SchemaBuilder;

/// An operation of the API.
#[derive(Debug, Clone)]
pub(in crate::http) struct ApiOperation {
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
    pub(in crate::http) query: Vec<QueryParameter>,
    /// Request body.
    pub(in crate::http) body: Option<OperationBody>,
    /// Response on success.
    pub(in crate::http) response: OperationResponse,
    /// Description of the MCP tool, if `about` has more than a model needs.
    pub(in crate::http) tool_description: Option<&'static str>,
    /// MCP tool whose body fields it shares: its own tool refers to them instead of describing them again.
    pub(in crate::http) fields_of_tool: Option<&'static str>,
    /// True if it may send mail to people.
    pub(in crate::http) notifies: bool,
    /// True if it reaches external systems: customers' hosts, name servers or receivers.
    pub(in crate::http) reaches_out: bool,
    /// True if it irreversibly replaces something, though it changes no fields.
    pub(in crate::http) overwrites: bool,
    /// True if it does its work on every call, so that a repeated request is a new one.
    pub(in crate::http) runs_every_time: bool,
}

/// Returns the schema of a list's `limit` parameter.
pub(in crate::http) fn limit() -> Value {
    json!({ "type": "integer", "minimum": 1, "maximum": query_params::MAX_LIMIT })
}

/// Description of a list's `limit` parameter.
pub(in crate::http) const LIMIT_ABOUT: &str = "Maximum number of items. Default: 50.";
const _: () = assert!(query_params::DEFAULT_LIMIT == 50, "LIMIT states it");

/// Media type of most documents.
const JSON: &str = "application/json";

/// Wrapper names of the resources that bodies create and change.
const WITH_WARNINGS: [&str; 8] =
    ["page", "monitor", "incident", "deploy", "destination", "subscriber", "import", "alerts"];

/// A query parameter.
#[derive(Debug, Clone)]
pub(in crate::http) struct QueryParameter {
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
pub(in crate::http) struct OperationBody {
    /// Component name.
    pub(in crate::http) name: &'static str,
    /// Schema.
    pub(in crate::http) schema: Map<String, Value>,
    /// False if a request without a body is the same as one with an empty object.
    pub(in crate::http) is_required: bool,
}

/// The response of an operation on success.
#[derive(Debug, Clone)]
pub(in crate::http) struct OperationResponse {
    /// HTTP status.
    pub(in crate::http) status: u16,
    /// Description.
    pub(in crate::http) about: &'static str,
    /// Media type of the document.
    pub(in crate::http) media: &'static str,
    /// Response document; `None` if there is no body.
    pub(in crate::http) document: Option<ResponseDocument>,
}

/// A response document, described by the component of that name.
#[derive(Clone)]
pub(in crate::http) struct ResponseDocument {
    /// Component name.
    pub(in crate::http) name: &'static str,
    schema: fn(&mut SchemaGenerator, &'static str) -> Value,
    field: &'static str,
    extra_field: Option<(&'static str, Value)>,
}

impl std::fmt::Debug for ResponseDocument {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ResponseDocument").field("name", &self.name).finish_non_exhaustive()
    }
}

impl ApiOperation {
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
            response: OperationResponse { status: 200, about: "", media: JSON, document: None },
            tool_description: None,
            fields_of_tool: None,
            notifies: false,
            reaches_out: false,
            overwrites: false,
            runs_every_time: false,
        }
    }

    /// Sets the tag and the summary.
    pub(in crate::http) const fn with_summary(mut self, tag: &'static str, summary: &'static str) -> Self {
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
    pub(in crate::http) const fn tool_description(mut self, note: &'static str) -> Self {
        self.tool_description = Some(note);
        self
    }

    /// Names the MCP tool whose body fields are the same.
    pub(in crate::http) const fn fields_of_tool(mut self, tool: &'static str) -> Self {
        self.fields_of_tool = Some(tool);
        self
    }

    /// Marks the operation as reaching external systems by a check, a look-up or a delivery.
    pub(in crate::http) const fn reaches_out(mut self) -> Self {
        self.reaches_out = true;
        self
    }

    /// Marks the operation as irreversibly replacing something.
    pub(in crate::http) const fn overwrites(mut self) -> Self {
        self.overwrites = true;
        self
    }

    /// Marks the operation as mailing people unless `notify` is false.
    pub(in crate::http) const fn notifies(mut self) -> Self {
        self.notifies = true;
        self
    }

    /// Marks the operation as doing its work on every call, whatever idempotency key it carries.
    pub(in crate::http) const fn runs_every_time(mut self) -> Self {
        self.runs_every_time = true;
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
        self.query.push(QueryParameter { name, about, schema, example: example.into() });
        self
    }

    /// Sets the request body, which its reader describes. Defaults are put into the descriptions, because client
    /// generators treat a field with a `default` as required. In a PATCH, a field that is left out keeps its value
    /// and null resets it to the default.
    pub(in crate::http) fn accepts<T>(
        mut self,
        name: &'static str,
        reader: impl FnOnce(&mut SchemaBuilder) -> T,
    ) -> Self {
        let mut description = SchemaBuilder::default();
        reader(&mut description);
        let mut schema = description.schema();
        let is_change = self.method == Method::PATCH;
        describe_defaults(&mut schema, is_change);
        self.body = Some(OperationBody { name, schema, is_required: true });
        self
    }

    /// Allows requests without a body.
    pub(in crate::http) fn body_optional(mut self) -> Self {
        if let Some(body) = &mut self.body {
            body.is_required = false;
        }
        self
    }

    /// Returns the schema of the warnings that a response to a body may have next to its document.
    pub(in crate::http) fn warnings_schema() -> Value {
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
    pub(in crate::http) fn nullable(mut self, fields: &[&str]) -> Self {
        let properties = self.body.as_mut().and_then(|body| body.schema.get_mut("properties"));
        let mut properties = properties.and_then(Value::as_object_mut);
        for field in fields {
            let Some(schema) = properties.as_mut().and_then(|all| all.get_mut(*field)) else { continue };
            schema["type"] = json!([schema["type"], "null"]);
            if let Some(Value::Array(values)) = schema.get_mut("enum") {
                values.push(Value::Null);
            }
        }
        self
    }

    /// Leaves fields out of the description of the body. They are ignored like any other that does not apply.
    pub(in crate::http) fn without(mut self, fields: &[&str]) -> Self {
        let properties = self.body.as_mut().and_then(|body| body.schema.get_mut("properties"));
        if let Some(properties) = properties.and_then(Value::as_object_mut) {
            properties.retain(|name, _| !fields.contains(&name.as_str()));
        }
        self
    }

    /// Leaves a value out of the description of a body field, because the operation refuses it.
    pub(in crate::http) fn without_value(mut self, field: &str, value: &str) -> Self {
        let schema = self.body.as_mut().and_then(|body| body.schema.get_mut("properties")?.get_mut(field));
        if let Some(Value::Array(values)) = schema.and_then(|schema| schema.get_mut("enum")) {
            values.retain(|one| one != value);
        }
        self
    }

    /// Sets the response: an object with the document under the name `field`. The response to a body that creates
    /// or changes a resource may have warnings next to it.
    pub(in crate::http) fn responds<T: JsonSchema>(
        self,
        status: u16,
        name: &'static str,
        field: &'static str,
        about: &'static str,
    ) -> Self {
        let beside = WITH_WARNINGS.contains(&field).then(|| ("warnings", Self::warnings_schema()));
        self.set_response(
            status,
            about,
            Some(ResponseDocument { name, schema: wrapped::<T>, field, extra_field: beside }),
        )
    }

    /// Sets the response to the document itself.
    pub(in crate::http) fn responds_bare<T: JsonSchema>(self, name: &'static str, about: &'static str) -> Self {
        self.set_response(200, about, Some(ResponseDocument { name, schema: bare::<T>, field: "", extra_field: None }))
    }

    /// Sets the response to a text of that media type.
    pub(in crate::http) fn responds_text(self, media: &'static str, name: &'static str, about: &'static str) -> Self {
        let document = ResponseDocument { name, schema: text, field: "", extra_field: None };
        let mut operation = self.set_response(200, about, Some(document));
        operation.response.media = media;
        operation
    }

    /// Adds another field next to the document in the response.
    pub(in crate::http) fn with_field(mut self, name: &'static str, schema: Value) -> Self {
        if let Some(document) = &mut self.response.document {
            document.extra_field = Some((name, schema));
        }
        self
    }

    /// Sets the response to 204, without a body.
    pub(in crate::http) fn responds_empty(self, about: &'static str) -> Self {
        self.set_response(204, about, None)
    }

    fn set_response(mut self, status: u16, about: &'static str, document: Option<ResponseDocument>) -> Self {
        self.response = OperationResponse { status, about, media: JSON, document };
        self
    }

    /// Returns true if the operation changes something.
    pub(in crate::http) fn writes(&self) -> bool {
        !self.method.is_safe()
    }

    /// Returns the names of its path parameters, in order.
    pub(in crate::http) fn path_parameters(&self) -> impl Iterator<Item = &'static str> {
        self.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
    }
}

impl ResponseDocument {
    /// Returns the schema of the document; the schemas it refers to are added to the generator.
    pub(in crate::http) fn schema(&self, generator: &mut SchemaGenerator) -> Value {
        let mut schema = (self.schema)(generator, self.field);
        if let (Some((name, beside)), Some(properties)) = (&self.extra_field, schema.get_mut("properties")) {
            properties[name] = beside.clone();
        }
        schema
    }
}

/// Moves the defaults of all fields into their descriptions. The fields of an object in a body change something too.
fn describe_defaults(schema: &mut Map<String, Value>, is_change: bool) {
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    for property in properties.into_iter().flat_map(Map::values_mut).filter_map(Value::as_object_mut) {
        describe_default(property, is_change);
        describe_defaults(property, true);
    }
}

/// Moves a field's default into its description.
fn describe_default(property: &mut Map<String, Value>, is_change: bool) {
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

fn text(_: &mut SchemaGenerator, _: &'static str) -> Value {
    json!({ "type": "string" })
}
