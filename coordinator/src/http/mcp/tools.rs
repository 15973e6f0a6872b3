//! Tools: each operation of the API is one, with the schemas that its description has, and is called as a request of it.

use std::collections::BTreeMap;

use ::http::Method;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value, json};

use crate::http::openapi::operation::Operation;
use crate::http::openapi::{part_about, standalone};
use crate::http::{legacy, overdue};

/// What may stand in a part of a path or query as it is.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Every tool, by name.
#[derive(Debug)]
pub(in crate::http) struct Tools {
    tools: BTreeMap<String, Tool>,
}

#[derive(Debug)]
struct Tool {
    operation: Operation,
    /// As a client lists it.
    listed: Value,
    /// Names of the body's fields.
    fields: Vec<String>,
}

/// A call of a tool as the request that it is.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Asked {
    /// Method of the request.
    pub(super) method: Method,
    /// Its path.
    pub(super) path: String,
    /// Its query, without the question mark.
    pub(super) query: String,
    /// Its body, where it has one.
    pub(super) body: Option<Vec<u8>>,
}

impl Tools {
    /// The tools that these operations are.
    pub(in crate::http) fn new(operations: Vec<Operation>) -> Self {
        let tools = operations.into_iter().map(|operation| (snake(operation.id), Tool::new(operation)));
        Self { tools: tools.collect() }
    }

    /// The tools as a client lists them: those that read, and where it may write the others too.
    pub(super) fn listed(&self, writes: bool) -> Vec<&Value> {
        let may = |tool: &&Tool| writes || !tool.operation.writes();
        self.tools.values().filter(may).map(|tool| &tool.listed).collect()
    }

    /// Whether a tool of that name changes something; none where there is no such tool.
    pub(super) fn writes(&self, name: &str) -> Option<bool> {
        self.find(name).map(|tool| tool.operation.writes())
    }

    /// Whether a tool of that name waits for somebody else, such as agents.
    pub(super) fn waits(&self, name: &str) -> bool {
        self.find(name).is_some_and(|tool| overdue::limit_of(tool.operation.path) > overdue::LIMIT)
    }

    /// The request that a call of the tool is.
    ///
    /// # Errors
    /// What is wrong with the arguments, in words.
    pub(super) fn asked(&self, name: &str, mut arguments: Map<String, Value>) -> Result<Asked, String> {
        let Some(Tool { operation, fields, .. }) = self.find(name) else {
            return Err(format!("there is no tool {name}"));
        };
        let mut path = String::from(crate::http::API);
        for part in operation.path.split('/').skip(1) {
            path.push('/');
            match part.strip_prefix('{').and_then(|part| part.strip_suffix('}')) {
                None => path.push_str(part),
                Some(part) => match take(&mut arguments, part) {
                    Some(Value::String(id)) if !id.is_empty() => {
                        path.extend(utf8_percent_encode(&id, PLAIN));
                    }
                    _ => return Err(format!("{part} is required and must be a string")),
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
            query.push(format!("{}={}", parameter.name, utf8_percent_encode(&text, PLAIN)));
        }
        if operation.body.is_some() {
            legacy::read_old_names(&mut arguments);
        }
        // A name that is not known is most likely a slip, which an answer that says nothing of it would hide.
        if let Some(name) = arguments.keys().find(|name| !fields.contains(name)) {
            return Err(format!("there is no argument {name}"));
        }
        let body = operation.body.is_some();
        let body = body.then(|| serde_json::to_vec(&Value::Object(arguments)).unwrap_or_default());
        Ok(Asked { method: operation.method.clone(), path, query: query.join("&"), body })
    }

    fn find(&self, name: &str) -> Option<&Tool> {
        self.tools.get(legacy::new_tool(name))
    }
}

impl Tool {
    fn new(operation: Operation) -> Self {
        let mut properties = Map::new();
        let mut required: Vec<Value> = Vec::new();
        for part in operation.parts() {
            properties.insert(part.to_owned(), json!({ "type": "string", "description": part_about(part) }));
            required.push(json!(part));
        }
        for parameter in &operation.query {
            let mut schema = parameter.schema.clone();
            schema["description"] = json!(parameter.about);
            properties.insert(parameter.name.to_owned(), schema);
        }
        let mut fields = Vec::new();
        if let Some(body) = &operation.body {
            if let Some(Value::Object(described)) = body.schema.get("properties") {
                fields.extend(described.keys().cloned());
                properties.extend(described.clone());
            }
            if let Some(Value::Array(names)) = body.schema.get("required") {
                required.extend(names.iter().cloned());
            }
        }
        let mut input = json!({ "type": "object", "properties": properties, "additionalProperties": false });
        if !required.is_empty() {
            input["required"] = json!(required);
        }
        let mut words = operation.summary.to_owned();
        for more in [operation.about, if operation.tells { TELLS } else { "" }] {
            if !more.is_empty() {
                words = format!("{words}. {more}");
            }
        }
        let output = operation.answer.document.as_ref().map_or_else(
            || json!({ "type": "object", "properties": { "done": { "type": "boolean" } }, "required": ["done"] }),
            standalone,
        );
        let listed = json!({
            "name": snake(operation.id),
            "title": operation.summary,
            "description": words,
            "inputSchema": input,
            "outputSchema": output,
            "annotations": {
                "title": operation.summary,
                "readOnlyHint": !operation.writes(),
                "destructiveHint": operation.method == Method::DELETE,
                "idempotentHint": operation.method != Method::POST,
                "openWorldHint": operation.tells,
            },
        });
        Self { operation, listed, fields }
    }
}

const TELLS: &str = "Subscribers are told by mail and webhook unless notify is false.";

/// An argument by its name, or by the name that monitors had.
fn take(arguments: &mut Map<String, Value>, name: &str) -> Option<Value> {
    arguments.shift_remove(name).or_else(|| arguments.shift_remove(legacy::old_argument(name)?))
}

/// `listMonitors` as `list_monitors`.
fn snake(id: &str) -> String {
    let mut name = String::with_capacity(id.len() + 4);
    for letter in id.chars() {
        if letter.is_ascii_uppercase() {
            name.push('_');
        }
        name.push(letter.to_ascii_lowercase());
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::openapi::operations;

    fn tools() -> Tools {
        Tools::new(operations())
    }

    fn object(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap_or_default()
    }

    #[test]
    fn a_reader_sees_no_tool_that_writes() {
        let tools = tools();
        assert!(tools.listed(false).iter().all(|tool| tool["annotations"]["readOnlyHint"] == true));
        assert!(tools.listed(true).len() > tools.listed(false).len());
        for tool in tools.listed(true) {
            let name = tool["name"].as_str().unwrap_or_default();
            assert!(
                !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'),
                "{name}"
            );
            assert_eq!(
                (&tool["inputSchema"]["type"], &tool["outputSchema"]["type"]),
                (&json!("object"), &json!("object"))
            );
        }
    }

    #[test]
    fn arguments_become_a_path_a_query_and_a_body() {
        let sent = object(json!({ "pageId": "pag_1/..", "name": "Shop", "url": "a.example" }));
        let asked = tools().asked("create_monitor", sent).unwrap();
        assert_eq!((asked.method, asked.path.as_str()), (Method::POST, "/api/v1/pages/pag_1%2F../monitors"));
        assert_eq!(asked.body.as_deref(), Some(&br#"{"name":"Shop","url":"a.example"}"#[..]));
        let asked = tools()
            .asked(
                "get_monitor",
                object(
                    json!({ "pageId": "p", (legacy::old_argument("monitorId").unwrap_or_default()): "m" }),
                ),
            )
            .unwrap();
        assert_eq!((asked.path.as_str(), asked.body), ("/api/v1/pages/p/monitors/m", None));
    }

    #[test]
    fn looks_and_test_alerts_wait_for_somebody_else() {
        let tools = tools();
        let waiting: Vec<&str> =
            tools.tools.keys().map(String::as_str).filter(|name| tools.waits(name)).collect();
        assert_eq!(waiting, ["check_domain", "check_monitor", "test_destination"]);
    }

    #[test]
    fn old_names_answer_and_are_not_listed() {
        let tools = tools();
        assert_eq!(legacy::TOOLS.map(|(old, _)| tools.writes(old)), [Some(false), Some(true)]);
        assert!(
            tools.listed(true).iter().all(|tool| legacy::TOOLS.iter().all(|(old, _)| tool["name"] != *old))
        );
    }

    #[test]
    fn wrong_arguments_are_named() {
        let refused = |name: &str, value| tools().asked(name, object(value)).unwrap_err();
        assert_eq!(refused("list_monitors", json!({})), "pageId is required and must be a string");
        assert_eq!(
            refused("list_monitors", json!({ "pageId": 5 })),
            "pageId is required and must be a string"
        );
        assert_eq!(refused("list_pages", json!({ "x": 1 })), "there is no argument x");
        assert_eq!(refused("nothing", json!({})), "there is no tool nothing");
        assert_eq!(
            refused("create_monitor", json!({ "pageId": "p", "url": "a.example", "interval": 5 })),
            "there is no argument interval"
        );
    }
}
