//! Monitors were called checkpoints: the old names in paths, bodies and answers.

use std::borrow::Cow;

use serde_json::{Map, Value};

/// New names, each with the old one.
const NAMES: [(&str, &str); 3] =
    [("monitor", "checkpoint"), ("monitors", "checkpoints"), ("monitorIds", "checkpointIds")];

/// What the API's description says of them.
pub(super) const ABOUT: &str = "Monitors were called checkpoints: old paths (`…/checkpoints`), old names in bodies \
    (`checkpoint`, `checkpoints`, `checkpointIds`) and old names in answers still work beside the new ones.";

/// Tools for agents by their old names, which still answer, each with the new one.
pub(super) const TOOLS: [(&str, &str); 2] =
    [("list_checkpoints", "list_monitors"), ("create_checkpoint", "create_monitor")];

/// What a tool is called now.
pub(super) fn new_tool(name: &str) -> &str {
    TOOLS.iter().find(|(old, _)| *old == name).map_or(name, |(_, new)| new)
}

/// What an argument that names something was called before; none where its name is as it was.
pub(super) fn old_argument(name: &str) -> Option<&'static str> {
    (name == "monitorId").then_some("checkpointId")
}

/// A path of the API with a page's `/checkpoints` read as `/monitors`, so that both are the same handler. Elsewhere the
/// word is somebody's own, such as the label of a page.
pub(super) fn new_path(path: &str) -> Cow<'_, str> {
    let below = path.strip_prefix(super::API).and_then(|path| path.strip_prefix("/pages/"));
    let Some((page, rest)) = below.and_then(|below| below.split_once('/')) else {
        return Cow::Borrowed(path);
    };
    match rest.strip_prefix("checkpoints") {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => {
            Cow::Owned(format!("{}/pages/{page}/monitors{rest}", super::API))
        }
        _ => Cow::Borrowed(path),
    }
}

/// Reads old names in a body as new ones, at every depth; where both are there the new one counts. Request headers
/// are a customer's own names and stay.
pub(super) fn read_old_names(object: &mut Map<String, Value>) {
    for (new, old) in NAMES {
        if let Some(value) = object.remove(old)
            && !object.contains_key(new)
        {
            object.insert(new.to_owned(), value);
        }
    }
    for (name, value) in object.iter_mut() {
        if name != "headers" {
            each_object(value, &mut read_old_names);
        }
    }
}

/// Sets the old names beside the new ones, at every depth.
pub(super) fn add_old_names(value: &mut Value) {
    each_object(value, &mut |object| {
        object.values_mut().for_each(add_old_names);
        for (new, old) in NAMES {
            if let Some(value) = object.get(new).cloned() {
                object.insert(old.to_owned(), value);
            }
        }
    });
}

/// Calls for the object, or for each object of the list.
fn each_object(value: &mut Value, call: &mut impl FnMut(&mut Map<String, Value>)) {
    match value {
        Value::Object(object) => call(object),
        Value::Array(items) => items.iter_mut().for_each(|item| each_object(item, call)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn old_names_of_tools_and_arguments_have_new_ones() {
        assert_eq!((new_tool("list_checkpoints"), new_tool("get_page")), ("list_monitors", "get_page"));
        assert_eq!((old_argument("monitorId"), old_argument("pageId")), (Some("checkpointId"), None));
    }

    #[test]
    fn only_the_segment_after_a_page_is_an_old_name() {
        assert_eq!(new_path("/api/v1/pages/x/checkpoints/y"), "/api/v1/pages/x/monitors/y");
        assert_eq!(new_path("/api/v1/pages/x/checkpoints"), "/api/v1/pages/x/monitors");
        for path in [
            "/p/checkpoints",
            "/api/v1/checkpoints",
            "/api/v1/pages/checkpoints",
            "/api/v1/pages/x/checkpoints-2",
        ] {
            assert_eq!(new_path(path), path);
        }
        assert_eq!(new_path("/api/v1/pages/x/monitors/checkpoints"), "/api/v1/pages/x/monitors/checkpoints");
    }

    #[test]
    fn bodies_may_use_old_names_but_new_ones_count() {
        let Value::Object(mut body) = json!({
            "checkpointIds": [1], "checkpoints": [{ "checkpoint": 2 }], "monitors": [{ "checkpoint": 3 }],
            "headers": { "checkpoint": "kept" },
        }) else {
            panic!()
        };
        read_old_names(&mut body);
        let expected = json!({
            "monitorIds": [1], "monitors": [{ "monitor": 3 }], "headers": { "checkpoint": "kept" },
        });
        assert_eq!(Value::Object(body), expected);
    }

    #[test]
    fn answers_carry_both_names_at_every_depth() {
        let mut answer =
            json!({ "incidents": [{ "monitors": [{ "id": 1 }] }], "monitor": { "monitorIds": null } });
        add_old_names(&mut answer);
        let expected = json!({
            "incidents": [{ "monitors": [{ "id": 1 }], "checkpoints": [{ "id": 1 }] }],
            "monitor": { "monitorIds": null, "checkpointIds": null },
            "checkpoint": { "monitorIds": null, "checkpointIds": null },
        });
        assert_eq!(answer, expected);
    }
}
