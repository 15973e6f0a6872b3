//! Backward compatibility with the old name of monitors, "checkpoints", in paths, request bodies and responses.

use std::borrow::Cow;
use std::cell::RefCell;
use std::io::{self, Write};

use ::http::header::{HeaderName, HeaderValue, LINK};
use serde::Serialize;
use serde_json::ser::{CharEscape, CompactFormatter, Formatter, Serializer};
use serde_json::{Map, Value};

use super::response::HttpResponse;

/// Field names, new and old.
const FIELD_NAMES: [(&str, &str); 3] =
    [("monitor", "checkpoint"), ("monitors", "checkpoints"), ("monitorIds", "checkpointIds")];

/// Value of the `Deprecation` header: the old names are deprecated since 14 September 2026.
pub(super) const DEPRECATED_SINCE: &str = "@1789344000";

/// Old name of the list of monitors.
pub(super) const OLD_MONITORS: &str = "checkpoints";

/// Paragraph on the old names in the OpenAPI description.
pub(super) const DESCRIPTION: &str = "Monitors were called checkpoints: old paths (`…/checkpoints`) and old field names \
    (`checkpoint`, `checkpoints`, `checkpointIds`) in requests and responses still work next to the new ones.";

/// MCP tools, by their old names, which still work, and their new ones.
pub(super) const OLD_TOOLS: [(&str, &str); 2] =
    [("list_checkpoints", "list_monitors"), ("create_checkpoint", "create_monitor")];

/// Returns the current name of a tool.
pub(super) fn new_tool(name: &str) -> &str {
    OLD_TOOLS.iter().find(|(old, _)| *old == name).map_or(name, |(_, new)| new)
}

/// Iterates over all old names of fields and tools, with their new ones.
pub(super) fn all_names() -> impl Iterator<Item = (&'static str, &'static str)> {
    FIELD_NAMES.into_iter().map(|(new, old)| (old, new)).chain(OLD_TOOLS)
}

/// Old name of a field; `None` if it was not renamed.
pub(super) fn old_name(name: &str) -> Option<&'static str> {
    FIELD_NAMES.iter().find(|(new, _)| *new == name).map(|(_, old)| *old)
}

/// Old name of an id argument; `None` if it was not renamed.
pub(super) fn old_argument(name: &str) -> Option<&'static str> {
    (name == "monitorId").then_some("checkpointId")
}

/// Rewrites `/checkpoints` below a page of the API to `/monitors`, so that both reach the same handler. Elsewhere the
/// word may be the user's own, such as the slug of a page.
pub(super) fn new_path(path: &str) -> Cow<'_, str> {
    let below = path.strip_prefix(super::API_PREFIX).and_then(|path| path.strip_prefix("/pages/"));
    let Some((page, rest)) = below.and_then(|below| below.split_once('/')) else {
        return Cow::Borrowed(path);
    };
    match rest.strip_prefix("checkpoints") {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => {
            Cow::Owned(format!("{}/pages/{page}/monitors{rest}", super::API_PREFIX))
        }
        _ => Cow::Borrowed(path),
    }
}

/// Returns true if an API path uses the old name.
pub(super) fn is_old_path(path: &str) -> bool {
    matches!(new_path(path), Cow::Owned(_))
}

/// Adds the deprecation date of old paths (RFC 9745) and a link to the policy. There is no `Sunset` header (RFC 8594),
/// since no end date is set.
pub(super) fn with_deprecation(reply: HttpResponse, base_url: &str) -> HttpResponse {
    let reply = reply.with(HeaderName::from_static("deprecation"), HeaderValue::from_static(DEPRECATED_SINCE));
    let policy = format!("<{base_url}{}/docs#versions>; rel=\"deprecation\"; type=\"text/html\"", super::API_PREFIX);
    match HeaderValue::try_from(policy) {
        Ok(policy) => reply.with(LINK, policy),
        Err(_) => reply,
    }
}

/// Renames old field names in a request body to new ones, at every depth; if both are present, the new one is used. The
/// `headers` object is skipped, since its names are the customer's own.
pub(super) fn read_old_names(object: &mut Map<String, Value>) {
    for (new, old) in FIELD_NAMES {
        if let Some(value) = object.remove(old)
            && !object.contains_key(new)
        {
            object.insert(new.to_owned(), value);
        }
    }
    for (name, value) in object.iter_mut() {
        if name != "headers" {
            for_each_object(value, &mut read_old_names);
        }
    }
}

/// Serializes a document as JSON, with the old names next to the new ones at every depth. Each value is serialized
/// once, and its bytes are copied for the old name.
pub(super) fn to_json(document: &impl Serialize) -> Vec<u8> {
    let bytes = RefCell::new(Vec::with_capacity(1024));
    let names = DualNameFormatter { bytes: &bytes, key_fragments: None, pending_name: None, values: Vec::new() };
    let mut writer = Serializer::with_formatter(SharedBuffer(&bytes), names);
    // A document that fails to serialize, which the types rule out, would give an empty body.
    if document.serialize(&mut writer).is_err() {
        return Vec::new();
    }
    bytes.into_inner()
}

/// Buffer that the JSON serializer and [`DualNameFormatter`] both write to.
struct SharedBuffer<'a>(&'a RefCell<Vec<u8>>);

impl Write for SharedBuffer<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Formatter of compact JSON that repeats each value with a new name under its old name.
struct DualNameFormatter<'a> {
    bytes: &'a RefCell<Vec<u8>>,
    /// Fragments written of the current key; `None` outside of keys.
    key_fragments: Option<usize>,
    /// Old name of the key written last.
    pending_name: Option<&'static str>,
    /// For each open value: its start in the buffer and its old name, if it has one.
    values: Vec<Option<(usize, &'static str)>>,
}

impl Formatter for DualNameFormatter<'_> {
    fn begin_object_key<W: Write + ?Sized>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        (self.key_fragments, self.pending_name) = (Some(0), None);
        CompactFormatter.begin_object_key(writer, first)
    }

    fn end_object_key<W: Write + ?Sized>(&mut self, _: &mut W) -> io::Result<()> {
        self.key_fragments = None;
        Ok(())
    }

    fn write_string_fragment<W: Write + ?Sized>(&mut self, writer: &mut W, text: &str) -> io::Result<()> {
        if let Some(fragments) = &mut self.key_fragments {
            let is_whole = *fragments == 0;
            *fragments += 1;
            self.pending_name = FIELD_NAMES.iter().find(|(new, _)| is_whole && *new == text).map(|(_, old)| *old);
        }
        writer.write_all(text.as_bytes())
    }

    fn write_char_escape<W: Write + ?Sized>(&mut self, writer: &mut W, escape: CharEscape) -> io::Result<()> {
        if let Some(fragments) = &mut self.key_fragments {
            *fragments += 1;
            self.pending_name = None;
        }
        CompactFormatter.write_char_escape(writer, escape)
    }

    fn begin_object_value<W: Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b":")?;
        let start = self.bytes.borrow().len();
        self.values.push(self.pending_name.take().map(|old| (start, old)));
        Ok(())
    }

    fn end_object_value<W: Write + ?Sized>(&mut self, _: &mut W) -> io::Result<()> {
        if let Some((start, old)) = self.values.pop().flatten() {
            let mut bytes = self.bytes.borrow_mut();
            let end = bytes.len();
            write!(bytes, ",\"{old}\":")?;
            bytes.extend_from_within(start..end);
        }
        Ok(())
    }
}

/// Removes old names that are present next to new ones, at every depth.
pub(super) fn drop_old_names(value: &mut Value) {
    for_each_object(value, &mut |object| {
        for (new, old) in FIELD_NAMES {
            if object.contains_key(new) {
                object.shift_remove(old);
            }
        }
        object.values_mut().for_each(drop_old_names);
    });
}

/// Calls the closure for the object, or for each object in the list.
fn for_each_object(value: &mut Value, call: &mut impl FnMut(&mut Map<String, Value>)) {
    match value {
        Value::Object(object) => call(object),
        Value::Array(items) => items.iter_mut().for_each(|item| for_each_object(item, call)),
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
        for path in
            ["/p/checkpoints", "/api/v1/checkpoints", "/api/v1/pages/checkpoints", "/api/v1/pages/x/checkpoints-2"]
        {
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

    fn with_both_names(answer: &impl Serialize) -> Value {
        serde_json::from_slice(&to_json(answer)).unwrap()
    }

    #[test]
    fn answers_carry_both_names_at_every_depth() {
        let answer = json!({ "incidents": [{ "monitors": [{ "id": 1 }] }], "monitor": { "monitorIds": null } });
        let expected = json!({
            "incidents": [{ "monitors": [{ "id": 1 }], "checkpoints": [{ "id": 1 }] }],
            "monitor": { "monitorIds": null, "checkpointIds": null },
            "checkpoint": { "monitorIds": null, "checkpointIds": null },
        });
        assert_eq!(with_both_names(&answer), expected);
        assert_eq!(
            with_both_names(&json!([{ "monitor": [] }, "monitor"])),
            json!([{ "monitor": [], "checkpoint": [] }, "monitor"])
        );
    }

    #[test]
    fn old_names_are_dropped_next_to_the_new_ones() {
        let answer = json!({ "incidents": [{ "monitors": [{ "id": 1 }] }], "name": "checkpoint" });
        let mut object = with_both_names(&answer);
        drop_old_names(&mut object);
        assert_eq!(object, answer);
    }

    #[test]
    fn only_complete_names_are_duplicated_and_no_values() {
        let expected = json!({
            "monitor\n": 1, "\nmonitor": 2, "mon\"itor": 3, "\"monitor": 4, "monitors ": 5, "Monitor": 6, "": 7,
            "name": "monitor", "list": ["monitors", "monitorIds"], "text": "\"monitor\":1,",
        });
        assert_eq!(with_both_names(&expected), expected);
    }

    proptest::proptest! {
        #[test]
        fn the_output_equals_that_of_a_plain_implementation(seed in proptest::collection::vec(0_u8..8, 1..60)) {
            let answer = generated(&mut seed.into_iter(), 0);
            let mut expected = answer.clone();
            add_old_names_plainly(&mut expected);
            proptest::prop_assert_eq!(with_both_names(&answer), expected);
        }
    }

    /// Generates a document with renamed keys, similar keys, and text that looks like them.
    fn generated(seed: &mut impl Iterator<Item = u8>, depth: usize) -> Value {
        const KEYS: [&str; 5] = ["monitor", "monitors", "monitorIds", "other", "mon\u{1}itor"];
        match seed.next() {
            Some(count @ 0..=3) if depth < 6 => {
                let of = |at: u8| KEYS[usize::from(at + count) % KEYS.len()].to_owned();
                Value::Object((0..=count).map(|at| (of(at), generated(seed, depth + 1))).collect())
            }
            Some(count @ 4..=5) if depth < 6 => (3..count).map(|_| generated(seed, depth + 1)).collect(),
            Some(6) => json!("\"monitors\":[{"),
            Some(number) => json!(number),
            None => Value::Null,
        }
    }

    fn add_old_names_plainly(value: &mut Value) {
        for_each_object(value, &mut |object| {
            object.values_mut().for_each(add_old_names_plainly);
            for (new, old) in FIELD_NAMES {
                if let Some(value) = object.get(new).cloned() {
                    object.insert(old.to_owned(), value);
                }
            }
        });
    }
}
