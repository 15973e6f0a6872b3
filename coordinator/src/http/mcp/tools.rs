//! MCP tools generated from the operations of the API: each has a compact schema, and its calls become API requests.

use std::collections::BTreeMap;

use ::http::Method;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value, json};

use super::brief::{self, Wanted};
use super::{schema, time};
use crate::http::openapi::operation::Operation;
use crate::http::openapi::part_about;
use crate::http::{legacy, overdue};

/// Characters to escape in path segments and query values: all but the unreserved ones.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Operations whose results can be filtered, and whether they take `status` too, which is not an API parameter.
const BRIEF: [(&str, bool); 3] = [("getStatus", true), ("listIncidents", false), ("listMonitors", false)];

/// All tools, by name.
#[derive(Debug)]
pub(in crate::http) struct Tools {
    tools: BTreeMap<String, Tool>,
    /// Definition of the `get_time` tool.
    time: Value,
}

#[derive(Debug)]
struct Tool {
    operation: Operation,
    /// Tool definition, as listed to clients.
    listed: Value,
    /// Names of the body fields.
    fields: Vec<String>,
    /// Body fields that null clears, for updates.
    clearable: Vec<String>,
    /// Set if the result can be filtered; true if it can be by `status` too.
    brief: Option<bool>,
}

/// A tool call as an API request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Asked {
    /// HTTP method.
    pub(super) method: Method,
    /// Path.
    pub(super) path: String,
    /// Query string without the question mark.
    pub(super) query: String,
    /// Body, if there is one.
    pub(super) body: Option<Vec<u8>>,
    /// Filter of the result.
    pub(super) wanted: Wanted,
}

impl Tools {
    /// Generates the tools of these operations.
    pub(in crate::http) fn new(operations: Vec<Operation>) -> Self {
        let tools = operations.into_iter().map(|operation| (snake(operation.id), Tool::new(operation)));
        Self { tools: tools.collect(), time: time::listed(true) }
    }

    /// Tool definitions for a key: those that read, and those that write if it has write access.
    pub(in crate::http) fn listed(&self, writes: bool) -> Vec<&Value> {
        let may = |tool: &&Tool| writes || !tool.operation.writes();
        let mut listed: Vec<&Value> = self.tools.values().filter(may).map(|tool| &tool.listed).collect();
        let name = |tool: &Value| tool.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        listed.push(&self.time);
        listed.sort_by_key(|tool| name(tool));
        listed
    }

    /// Returns whether a tool changes something; `None` if it does not exist.
    pub(super) fn writes(&self, name: &str) -> Option<bool> {
        self.find(name).map(|tool| tool.operation.writes())
    }

    /// Returns true if a tool waits for another party, such as agents.
    pub(super) fn waits(&self, name: &str) -> bool {
        self.find(name).is_some_and(|tool| overdue::limit_of(tool.operation.path) > overdue::LIMIT)
    }

    /// Converts a tool call to an API request.
    ///
    /// # Errors
    /// Message on the invalid argument.
    pub(super) fn asked(&self, name: &str, mut arguments: Map<String, Value>) -> Result<Asked, String> {
        let Some(Tool { operation, fields, clearable, brief, .. }) = self.find(name) else {
            return Err(format!("there is no tool {name}"));
        };
        let wanted = match brief {
            Some(has_status) => Wanted::take(&mut arguments, *has_status)?,
            None => Wanted::default(),
        };
        if !clearable.is_empty() {
            clear(&mut arguments, clearable)?;
        }
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
        // An unknown name is most likely a mistake, which ignoring it would hide.
        if let Some(name) = arguments.keys().find(|name| !fields.contains(name)) {
            return Err(format!("there is no argument {name}"));
        }
        let body = operation.body.is_some();
        let body = body.then(|| serde_json::to_vec(&Value::Object(arguments)).unwrap_or_default());
        Ok(Asked { method: operation.method.clone(), path, query: query.join("&"), body, wanted })
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
            let mut schema = schema::terse(&parameter.schema);
            schema["description"] = json!(parameter.about);
            properties.insert(parameter.name.to_owned(), schema);
        }
        let (mut fields, mut clearable) = (Vec::new(), Vec::new());
        if let Some(body) = &operation.body {
            if let Some(Value::Object(described)) = body.schema.get("properties") {
                fields.extend(described.keys().cloned());
                // An immutable field is not listed as an argument of updates, although the API accepts it unchanged.
                let is_fixed = |name: &str| operation.method == Method::PATCH && name == "type";
                let taken = described.iter().filter(|(name, _)| !is_fixed(name));
                properties.extend(taken.map(|(name, field)| (name.clone(), schema::terse(field))));
                if operation.method == Method::PATCH {
                    clearable = schema::clearable(described);
                }
            }
            if let Some(Value::Array(names)) = body.schema.get("required") {
                required.extend(names.iter().cloned());
            }
        }
        if !clearable.is_empty() {
            properties.insert(schema::CLEAR.to_owned(), schema::clear());
        }
        let brief = BRIEF.into_iter().find(|(id, _)| *id == operation.id).map(|(_, has_status)| has_status);
        if let Some(has_status) = brief {
            properties.extend(brief::arguments(has_status));
        }
        let mut input = json!({ "type": "object", "properties": properties, "additionalProperties": false });
        if !required.is_empty() {
            input["required"] = json!(required);
        }
        let listed = json!({
            "name": snake(operation.id),
            "description": words(&operation, &fields),
            "inputSchema": input,
            "annotations": annotations(&operation),
        });
        Self { operation, listed, fields, clearable, brief }
    }
}

/// Builds the description of a tool.
fn words(operation: &Operation, fields: &[String]) -> String {
    let about = operation.note.unwrap_or(operation.about);
    let mut words = format!("{}.", operation.summary);
    let tells = operation.tells && fields.iter().any(|field| field == "notify");
    for more in [about, if tells { TELLS } else { "" }].into_iter().filter(|more| !more.is_empty()) {
        words.push(' ');
        words.push_str(more);
    }
    words
}

/// Builds the hints for clients (MCP, `ToolAnnotations`). Tools that overwrite or delete are destructive. The open
/// world is every host, mailbox or name server that the call contacts. Read-only tools have no hints about writing.
fn annotations(operation: &Operation) -> Value {
    let open_world = operation.tells || operation.reaches_out;
    if !operation.writes() {
        return json!({ "readOnlyHint": true, "openWorldHint": open_world });
    }
    let overwrites = matches!(operation.method, Method::PATCH | Method::DELETE) || operation.replaces;
    let mut hints =
        json!({ "readOnlyHint": false, "destructiveHint": overwrites, "openWorldHint": open_world });
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
        let known = name.as_str().and_then(|name| clearable.iter().find(|known| *known == name));
        let Some(known) = known else {
            return Err(format!("clear must be names from {}", clearable.join(", ")));
        };
        if arguments.insert(known.clone(), Value::Null).is_some_and(|value| !value.is_null()) {
            return Err(format!("{known} must not be both set and cleared"));
        }
    }
    Ok(())
}

const TELLS: &str = "Notifies subscribers by email and webhook unless notify is false.";

/// Removes an argument by its name, or by its old one.
fn take(arguments: &mut Map<String, Value>, name: &str) -> Option<Value> {
    arguments.shift_remove(name).or_else(|| arguments.shift_remove(legacy::old_argument(name)?))
}

/// Converts `listMonitors` to `list_monitors`.
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

    /// Limit of the list of tools in bytes, since it is part of every conversation with a model.
    const MOST_BYTES: usize = 40_000;

    fn tools() -> Tools {
        Tools::new(operations())
    }

    fn object(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap_or_default()
    }

    #[test]
    fn what_a_client_keeps_of_all_tools_is_short() {
        let tools = tools();
        let written = serde_json::to_string(&tools.listed(true)).unwrap();
        let longest =
            tools.listed(true).into_iter().map(|tool| (tool.to_string().len(), tool["name"].clone()));
        let mut longest: Vec<_> = longest.collect();
        longest.sort_by_key(|(length, _)| std::cmp::Reverse(*length));
        assert!(written.len() <= MOST_BYTES, "{} bytes: {longest:?}", written.len());
        assert!(
            !written.contains("\"null\"") && !written.contains("uint32") && !written.contains(".."),
            "{written}"
        );
    }

    #[test]
    fn annotations_say_what_a_call_does() {
        let tools = tools();
        let hints = |name: &str| {
            let listed = &tools.find(name).unwrap().listed["annotations"];
            ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"]
                .map(|hint| u8::from(listed[hint] == true))
        };
        for (name, expected) in [
            ("list_monitors", [1, 0, 0, 0]),
            ("create_monitor", [0, 0, 0, 1]),
            ("update_monitor", [0, 1, 1, 1]),
            ("delete_monitor", [0, 1, 1, 0]),
            ("check_monitor", [0, 0, 0, 1]),
            ("create_page", [0, 0, 0, 0]),
            ("update_page", [0, 1, 1, 0]),
            ("check_domain", [0, 0, 0, 1]),
            ("create_incident", [0, 0, 0, 1]),
            ("update_incident", [0, 1, 1, 0]),
            ("post_update", [0, 0, 0, 1]),
            ("create_deploy", [0, 0, 0, 0]),
            ("create_subscriber", [0, 0, 0, 1]),
            ("create_destination", [0, 0, 0, 1]),
            ("test_destination", [0, 0, 0, 1]),
            ("redeliver", [0, 0, 0, 1]),
            ("rotate_secret", [0, 1, 0, 0]),
            ("activate_secret", [0, 1, 0, 0]),
        ] {
            assert_eq!(hints(name), expected, "{name}");
        }
    }

    #[test]
    fn a_change_clears_fields_by_name() {
        let sent = |clear: Value| {
            let mut sent = object(json!({ "pageId": "p", "monitorId": "m", "name": "New", "clear": clear }));
            sent.retain(|_, value| !value.is_null());
            tools().asked("update_monitor", sent).map(|asked| String::from_utf8(asked.body.unwrap()).unwrap())
        };
        assert_eq!(sent(json!(["keyword"])).unwrap(), r#"{"name":"New","keyword":null}"#);
        assert_eq!(sent(Value::Null).unwrap(), r#"{"name":"New"}"#);
        assert!(sent(json!(["type"])).unwrap_err().starts_with("clear must be names from groupName, "));
        assert!(sent(json!("keyword")).is_err());
        let both = json!({ "pageId": "p", "monitorId": "m", "keyword": "x", "clear": ["keyword"] });
        assert!(tools().asked("update_monitor", object(both)).unwrap_err().starts_with("keyword must not"));
        let new = json!({ "pageId": "p", "clear": [] });
        assert_eq!(tools().asked("create_monitor", object(new)).unwrap_err(), "there is no argument clear");
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
            assert_eq!(tool["inputSchema"]["type"], "object");
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
