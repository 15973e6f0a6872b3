//! MCP tools generated from the operations of the API: each has a compact schema, and its calls become API requests.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use ::http::Method;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value, json};

use super::response_filter::{self, ResponseFilter};
use super::{schema, time_tool};
use crate::http::openapi::operation::ApiOperation;
use crate::http::openapi::{operations, parameter_description};
use crate::http::server::request_timeout;
use crate::http::{API_PREFIX, legacy};

/// Characters to escape in path segments and query values: all but the unreserved ones.
const UNESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Operations whose results can be filtered, and whether they take `status` too, which is not an API parameter.
const FILTERED_OPERATIONS: [(&str, bool); 3] = [("getStatus", true), ("listIncidents", false), ("listMonitors", false)];

/// All tools, by name.
#[derive(Debug)]
pub(in crate::http) struct McpTools {
    tools: BTreeMap<String, Tool>,
    /// Definition of the `get_time` tool.
    time: Value,
}

#[derive(Debug)]
struct Tool {
    operation: ApiOperation,
    /// Tool definition, as listed to clients.
    definition: Value,
    /// Names of the body fields.
    fields: Vec<String>,
    /// Body fields that null clears, for updates.
    clearable: Vec<String>,
    /// Set if the result can be filtered; true if it can be by `status` too.
    brief: Option<bool>,
}

/// A tool call as an API request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ToolRequest {
    /// HTTP method.
    pub(super) method: Method,
    /// Path.
    pub(super) path: String,
    /// Query string without the question mark.
    pub(super) query: String,
    /// Body, if there is one.
    pub(super) body: Option<Vec<u8>>,
    /// Filter of the result.
    pub(super) filter: ResponseFilter,
}

impl McpTools {
    /// Tools of all operations of the API, generated on first use.
    pub(in crate::http) fn shared() -> &'static Self {
        static TOOLS: LazyLock<McpTools> = LazyLock::new(|| McpTools::new(operations()));
        &TOOLS
    }

    /// Generates the tools of these operations.
    fn new(operations: Vec<ApiOperation>) -> Self {
        let tools = operations.into_iter().map(|operation| (to_snake_case(operation.id), Tool::new(operation)));
        Self { tools: tools.collect(), time: time_tool::tool_definition(true) }
    }

    /// Tool definitions for a key: those that read, and those that write if it has write access.
    pub(in crate::http) fn tool_list(&self, writes: bool) -> Vec<&Value> {
        let is_allowed = |tool: &&Tool| writes || !tool.operation.writes();
        let mut tools: Vec<&Value> = self.tools.values().filter(is_allowed).map(|tool| &tool.definition).collect();
        let name = |tool: &Value| tool.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        tools.push(&self.time);
        tools.sort_by_key(|tool| name(tool));
        tools
    }

    /// Returns whether a tool changes something; `None` if it does not exist.
    pub(super) fn writes(&self, name: &str) -> Option<bool> {
        self.find(name).map(|tool| tool.operation.writes())
    }

    /// Returns true if a tool waits for another party, such as agents.
    pub(super) fn is_slow(&self, name: &str) -> bool {
        self.find(name)
            .is_some_and(|tool| request_timeout::timeout_for(tool.operation.path) > request_timeout::REQUEST_TIMEOUT)
    }

    /// Converts a tool call to an API request.
    ///
    /// # Errors
    /// Message on the invalid argument.
    pub(super) fn request_for(&self, name: &str, mut arguments: Map<String, Value>) -> Result<ToolRequest, String> {
        let Some(Tool { operation, fields, clearable, brief, .. }) = self.find(name) else {
            return Err(format!("there is no tool {name}"));
        };
        let filter = match brief {
            Some(has_status) => ResponseFilter::from_arguments(&mut arguments, *has_status)?,
            None => ResponseFilter::default(),
        };
        if !clearable.is_empty() {
            clear(&mut arguments, clearable)?;
        }
        let mut path = String::from(API_PREFIX);
        for segment in operation.path.split('/').skip(1) {
            path.push('/');
            match segment.strip_prefix('{').and_then(|segment| segment.strip_suffix('}')) {
                None => path.push_str(segment),
                Some(segment) => match take_argument(&mut arguments, segment) {
                    Some(Value::String(id)) if !id.is_empty() => {
                        path.extend(utf8_percent_encode(&id, UNESCAPED));
                    }
                    _ => return Err(format!("{segment} is required and must be a string")),
                },
            }
        }
        let mut query = Vec::new();
        for parameter in &operation.query {
            let text = match arguments.remove(parameter.name) {
                None | Some(Value::Null) => continue,
                Some(Value::String(text)) => text,
                Some(value @ (Value::Number(_) | Value::Bool(_))) => value.to_string(),
                Some(_) => return Err(format!("{} must be a plain value", parameter.name)),
            };
            query.push(format!("{}={}", parameter.name, utf8_percent_encode(&text, UNESCAPED)));
        }
        if operation.body.is_some() {
            legacy::read_old_names(&mut arguments);
        }
        // An unknown name is most likely a mistake, which ignoring it would hide.
        if let Some(name) = arguments.keys().find(|name| !fields.contains(name)) {
            return Err(format!("there is no argument {name}"));
        }
        let body = operation.body.is_some();
        let body = body.then(|| serde_json::to_vec(&Value::Object(arguments)).unwrap_or_default());
        Ok(ToolRequest { method: operation.method.clone(), path, query: query.join("&"), body, filter })
    }

    fn find(&self, name: &str) -> Option<&Tool> {
        self.tools.get(legacy::new_tool(name))
    }
}

impl Tool {
    fn new(operation: ApiOperation) -> Self {
        let mut properties = Map::new();
        let mut required: Vec<Value> = Vec::new();
        for path_name in operation.path_parameters() {
            properties.insert(
                path_name.to_owned(),
                json!({ "type": "string", "description": parameter_description(path_name) }),
            );
            required.push(json!(path_name));
        }
        for parameter in &operation.query {
            let mut schema = schema::compact(&parameter.schema);
            schema["description"] = json!(parameter.about);
            properties.insert(parameter.name.to_owned(), schema);
        }
        let (mut fields, mut clearable) = (Vec::new(), Vec::new());
        if let Some(body) = &operation.body {
            if let Some(Value::Object(described)) = body.schema.get("properties") {
                fields.extend(described.keys().cloned());
                // An immutable field is not listed as an argument of updates, although the API accepts it unchanged.
                let is_fixed = |name: &str| operation.method == Method::PATCH && name == "type";
                let arguments = described.iter().filter(|(name, _)| !is_fixed(name));
                properties.extend(arguments.map(|(name, field)| {
                    let mut argument = schema::compact(field);
                    if let Some(tool) = operation.fields_of_tool {
                        argument["description"] = json!(format!("As in {tool}."));
                    }
                    (name.clone(), argument)
                }));
                if operation.method == Method::PATCH {
                    clearable = schema::clearable_fields(described);
                }
            }
            if let Some(Value::Array(names)) = body.schema.get("required") {
                required.extend(names.iter().cloned());
            }
        }
        if !clearable.is_empty() {
            properties.insert(schema::CLEAR.to_owned(), schema::clear_argument());
        }
        let brief =
            FILTERED_OPERATIONS.into_iter().find(|(id, _)| *id == operation.id).map(|(_, has_status)| has_status);
        if let Some(has_status) = brief {
            properties.extend(response_filter::filter_arguments(has_status));
        }
        let mut input = json!({ "type": "object", "properties": properties, "additionalProperties": false });
        if !required.is_empty() {
            input["required"] = json!(required);
        }
        let definition = json!({
            "name": to_snake_case(operation.id),
            "description": description(&operation, &fields),
            "inputSchema": input,
            "annotations": annotations(&operation),
        });
        Self { operation, definition, fields, clearable, brief }
    }
}

/// Builds the description of a tool.
fn description(operation: &ApiOperation, fields: &[String]) -> String {
    let about = operation.tool_description.unwrap_or(operation.about);
    let mut text = format!("{}.", operation.summary);
    let notifies = operation.notifies && fields.iter().any(|field| field == "notify");
    for sentence in [about, if notifies { NOTIFIES } else { "" }].into_iter().filter(|sentence| !sentence.is_empty()) {
        text.push(' ');
        text.push_str(sentence);
    }
    text
}

/// Builds the hints for clients (MCP, `ToolAnnotations`). Tools that overwrite or delete are destructive. The open
/// world is every host, mailbox or name server that the call contacts. Read-only tools have no hints about writing.
fn annotations(operation: &ApiOperation) -> Value {
    let open_world = operation.notifies || operation.reaches_out;
    if !operation.writes() {
        return json!({ "readOnlyHint": true, "openWorldHint": open_world });
    }
    let overwrites = matches!(operation.method, Method::PATCH | Method::DELETE) || operation.overwrites;
    let mut hints = json!({ "readOnlyHint": false, "destructiveHint": overwrites, "openWorldHint": open_world });
    if operation.method != Method::POST {
        hints["idempotentHint"] = json!(true);
    }
    hints
}

/// Replaces the `clear` argument by null values of the fields it lists.
fn clear(arguments: &mut Map<String, Value>, clearable: &[String]) -> Result<(), String> {
    let names = match arguments.shift_remove(schema::CLEAR) {
        None | Some(Value::Null) => return Ok(()),
        Some(Value::Array(names)) => names,
        Some(_) => return Err("clear must be a list of field names".to_owned()),
    };
    for name in names {
        let property = name.as_str().and_then(|name| clearable.iter().find(|property| *property == name));
        let Some(property) = property else {
            return Err(format!("clear must be names from {}", clearable.join(", ")));
        };
        if arguments.insert(property.clone(), Value::Null).is_some_and(|value| !value.is_null()) {
            return Err(format!("{property} must not be both set and cleared"));
        }
    }
    Ok(())
}

const NOTIFIES: &str = "Notifies subscribers by email and webhook unless notify is false.";

/// Removes an argument by its name, or by its old one.
fn take_argument(arguments: &mut Map<String, Value>, name: &str) -> Option<Value> {
    arguments.shift_remove(name).or_else(|| arguments.shift_remove(legacy::old_argument(name)?))
}

/// Converts `listMonitors` to `list_monitors`.
fn to_snake_case(id: &str) -> String {
    let mut name = String::with_capacity(id.len() + 4);
    for character in id.chars() {
        if character.is_ascii_uppercase() {
            name.push('_');
        }
        name.push(character.to_ascii_lowercase());
    }
    name
}

#[cfg(test)]
mod tests;
