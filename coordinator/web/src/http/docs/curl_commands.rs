//! Requests as curl commands, to be copied into a shell.

use serde_json::Value;

/// Formats a request as a curl command; ids and the key are shell variables.
pub(super) fn curl(method: &str, path: &str, body: Option<&Value>) -> String {
    let mut line = String::from("curl");
    if method != "GET" {
        line.push_str(&format!(" -X {method}"));
    }
    line.push_str(&format!(" \"$API{}\" \\\n  -H \"Authorization: Bearer $KEY\"", variables(path)));
    if let Some(body) = body {
        let body = serde_json::to_string_pretty(body).unwrap_or_default();
        line.push_str(&format!(" \\\n  -H 'Content-Type: application/json' \\\n  -d '{}'", quoted(&body)));
    }
    line
}

/// Replaces each id in a path with a variable: `{monitorId}` with `$MONITOR`.
fn variables(path: &str) -> String {
    let part = |part: &str| match part.strip_prefix('{').and_then(|part| part.strip_suffix("Id}")) {
        Some(name) => format!("${}", name.to_uppercase()),
        None => part.to_owned(),
    };
    path.split('/').map(part).collect::<Vec<_>>().join("/")
}

/// Escapes a text for single quotes.
fn quoted(text: &str) -> String {
    text.replace('\'', r"'\''")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_line_can_be_copied_into_a_shell() {
        let body = json!({ "title": "It's $HOME" });
        let line = curl("POST", "/pages/{pageId}/incidents/{incidentId}/updates", Some(&body));
        let expected = "curl -X POST \"$API/pages/$PAGE/incidents/$INCIDENT/updates\" \\\n  \
            -H \"Authorization: Bearer $KEY\" \\\n  -H 'Content-Type: application/json' \\\n  \
            -d '{\n  \"title\": \"It'\\''s $HOME\"\n}'";
        assert_eq!(line, expected);
        assert_eq!(curl("GET", "/me", None), "curl \"$API/me\" \\\n  -H \"Authorization: Bearer $KEY\"");
    }
}
