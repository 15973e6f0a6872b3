//! Tools: each operation of the API is one, with its description's schemas in short, and is called as a request of it.

use std::collections::BTreeMap;

use ::http::Method;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value, json};

use super::brief::{self, Wanted};
use super::{schema, time};
use crate::http::openapi::operation::Operation;
use crate::http::openapi::part_about;
use crate::http::{legacy, overdue};

/// What may stand in a part of a path or query as it is.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Operations whose answers have a short form; whether they take `status` too, which the API has no parameter for.
const BRIEF: [(&str, bool); 3] = [("getStatus", true), ("listIncidents", false), ("listMonitors", false)];

/// Every tool, by name.
#[derive(Debug)]
pub(in crate::http) struct Tools {
    tools: BTreeMap<String, Tool>,
    /// The tool that tells the time, as a client lists it.
    time: Value,
}

#[derive(Debug)]
struct Tool {
    operation: Operation,
    /// As a client lists it.
    listed: Value,
    /// Names of the body's fields.
    fields: Vec<String>,
    /// Those of them that null clears, of a change.
    clearable: Vec<String>,
    /// It has a short form; whether it takes `status` beside it.
    brief: Option<bool>,
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
    /// The part of the answer that is asked for.
    pub(super) wanted: Wanted,
}

impl Tools {
    /// The tools that these operations are.
    pub(in crate::http) fn new(operations: Vec<Operation>) -> Self {
        let tools = operations.into_iter().map(|operation| (snake(operation.id), Tool::new(operation)));
        Self { tools: tools.collect(), time: time::listed(true) }
    }

    /// The tools as a client lists them: those that read, and where it may write the others too.
    pub(in crate::http) fn listed(&self, writes: bool) -> Vec<&Value> {
        let may = |tool: &&Tool| writes || !tool.operation.writes();
        let mut listed: Vec<&Value> = self.tools.values().filter(may).map(|tool| &tool.listed).collect();
        let name = |tool: &Value| tool.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        listed.push(&self.time);
        listed.sort_by_key(|tool| name(tool));
        listed
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
    /// Fault of the arguments, in words.
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
        // A name that is not known is most likely a slip, which an answer that says nothing of it would hide.
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
                // What can't be changed is none of a change's arguments, though it may be sent as it was.
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

/// Describes a tool in sentences.
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

/// Hints for clients (MCP, `ToolAnnotations`). A tool that overwrites or deletes is destructive; one that only adds is not. The
/// open world is every host, mailbox or name server that the call reaches. A tool that reads has no hint about writing.
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

/// Puts null in the place of each field that is to be cleared.
fn clear(arguments: &mut Map<String, Value>, clearable: &[String]) -> Result<(), String> {
    let names = match arguments.shift_remove(schema::CLEAR) {
        None | Some(Value::Null) => return Ok(()),
        Some(Value::Array(names)) => names,
        Some(_) => return Err("clear must be a list of names of fields".to_owned()),
    };
    for name in names {
        let known = name.as_str().and_then(|name| clearable.iter().find(|known| *known == name));
        let Some(known) = known else {
            return Err(format!("clear must be names out of {}", clearable.join(", ")));
        };
        if arguments.insert(known.clone(), Value::Null).is_some_and(|value| !value.is_null()) {
            return Err(format!("{known} must not be set and cleared at once"));
        }
    }
    Ok(())
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

    /// Bytes of the list of tools at most, which every conversation with a model carries.
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
        assert!(sent(json!(["type"])).unwrap_err().starts_with("clear must be names out of groupName, "));
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
