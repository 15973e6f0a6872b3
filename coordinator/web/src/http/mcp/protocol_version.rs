//! MCP protocol versions: detects the version of a message and checks that its headers match.
//!
//! Up to 2025-11-25 a client first sends `initialize`; from 2026-07-28 on each request is self-contained.

use ::http::{HeaderMap, StatusCode};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::json_rpc::{HEADER_MISMATCH, INVALID_PARAMS, RpcError, UNSUPPORTED_VERSION};

/// The version without `initialize`.
pub(super) const MODERN_VERSION: &str = "2026-07-28";
/// Versions with `initialize`, newest first.
pub(super) const LEGACY_VERSIONS: [&str; 3] = ["2025-11-25", "2025-06-18", "2025-03-26"];

/// Field of `_meta` with the protocol version of a modern request.
const VERSION_FIELD: &str = "io.modelcontextprotocol/protocolVersion";
/// Field of `_meta` with the capabilities of the client.
const CAPABILITIES_FIELD: &str = "io.modelcontextprotocol/clientCapabilities";

/// Style of the protocol that a client uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProtocolEra {
    /// The client sends `initialize` first.
    Legacy,
    /// Each request is self-contained.
    Modern,
}

/// Detects the era of a request from its parameters and the header of its POST.
pub(super) fn protocol_era(headers: &HeaderMap, params: &Map<String, Value>) -> Result<ProtocolEra, RpcError> {
    let header = single_header(headers, "mcp-protocol-version")?;
    let version = params.get("_meta").and_then(|meta| meta.get(VERSION_FIELD));
    match (header, version) {
        (None, None) => Ok(ProtocolEra::Legacy),
        (Some(header), None) if LEGACY_VERSIONS.contains(&header) => Ok(ProtocolEra::Legacy),
        (Some(MODERN_VERSION), None) => {
            Err(RpcError::new(INVALID_PARAMS, format!("params._meta must have {VERSION_FIELD}")))
        }
        (Some(header), None) => Err(unsupported(header)),
        (None, Some(_)) => Err(mismatch("the header MCP-Protocol-Version is required")),
        (Some(header), Some(version)) if version.as_str() == Some(header) => {
            if header == MODERN_VERSION {
                Ok(ProtocolEra::Modern)
            } else {
                Err(unsupported(header))
            }
        }
        (Some(_), Some(_)) => Err(mismatch("the header MCP-Protocol-Version differs from the version in params._meta")),
    }
}

/// Checks that the version header, if there is one, names a supported version.
pub(super) fn check_version(headers: &HeaderMap) -> Result<(), RpcError> {
    match single_header(headers, "mcp-protocol-version")? {
        None | Some(MODERN_VERSION) => Ok(()),
        Some(version) if LEGACY_VERSIONS.contains(&version) => Ok(()),
        Some(version) => Err(unsupported(version)),
    }
}

/// Returns true if the header or any message of a batch names the modern version.
pub(super) fn is_modern(headers: &HeaderMap, members: &[Value]) -> bool {
    headers.get("mcp-protocol-version").is_some_and(|version| version == MODERN_VERSION)
        || members.iter().any(|member| {
            let meta = member.get("params").and_then(|params| params.get("_meta"));
            meta.is_some_and(|meta| meta.get(VERSION_FIELD).is_some())
        })
}

/// Checks that the headers of a modern request match its content.
pub(super) fn check_headers(headers: &HeaderMap, method: &str, params: &Map<String, Value>) -> Result<(), RpcError> {
    let capabilities = params.get("_meta").and_then(|meta| meta.get(CAPABILITIES_FIELD));
    if !capabilities.is_some_and(Value::is_object) {
        return Err(RpcError::new(INVALID_PARAMS, format!("params._meta must have {CAPABILITIES_FIELD}")));
    }
    match single_header(headers, "mcp-method")? {
        Some(name_header) if name_header == method => {}
        Some(_) => return Err(mismatch("the header Mcp-Method differs from the method")),
        None => return Err(mismatch("the header Mcp-Method is required")),
    }
    if method != "tools/call" {
        return Ok(());
    }
    let Some(name_header) = single_header(headers, "mcp-name")? else {
        return Err(mismatch("the header Mcp-Name is required"));
    };
    let name = params.get("name").and_then(Value::as_str).unwrap_or_default();
    if decode_header(name_header).as_deref() == Some(name) {
        Ok(())
    } else {
        Err(mismatch("the header Mcp-Name differs from params.name"))
    }
}

/// The error for an unsupported version; lists the supported ones.
pub(super) fn unsupported(requested: &str) -> RpcError {
    let mut supported = vec![MODERN_VERSION];
    supported.extend(LEGACY_VERSIONS);
    RpcError {
        status: StatusCode::BAD_REQUEST,
        code: UNSUPPORTED_VERSION,
        message: "this protocol version is not supported".to_owned(),
        data: Some(Box::new(json!({ "supported": supported, "requested": requested }))),
    }
}

fn mismatch(message: &str) -> RpcError {
    RpcError::new(HEADER_MISMATCH, message)
}

fn single_header<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, RpcError> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => match value.to_str() {
            Ok(text) => Ok(Some(text.trim())),
            Err(_) => Err(mismatch(&format!("the header {name} must be visible ASCII"))),
        },
        (Some(_), Some(_)) => Err(mismatch(&format!("the header {name} must be sent only once"))),
    }
}

/// Decodes a header value, which is wrapped as `=?base64?…?=` if it is not ASCII.
fn decode_header(value: &str) -> Option<String> {
    match value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) {
        Some(wrapped) => String::from_utf8(STANDARD.decode(wrapped).ok()?).ok(),
        None => Some(value.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect::<HeaderMap>()
    }

    fn params(version: Option<&str>) -> Map<String, Value> {
        let mut meta = json!({ CAPABILITIES_FIELD: {} });
        if let Some(version) = version {
            meta[VERSION_FIELD] = json!(version);
        }
        json!({ "name": "list_monitors", "_meta": meta }).as_object().cloned().unwrap()
    }

    #[test]
    fn header_and_message_determine_the_protocol_era() {
        for (header, version, expected) in [
            (None, None, Ok(ProtocolEra::Legacy)),
            (Some("2025-06-18"), None, Ok(ProtocolEra::Legacy)),
            (Some(MODERN_VERSION), Some(MODERN_VERSION), Ok(ProtocolEra::Modern)),
            (Some(MODERN_VERSION), None, Err(INVALID_PARAMS)),
            (None, Some(MODERN_VERSION), Err(HEADER_MISMATCH)),
            (Some("2025-06-18"), Some(MODERN_VERSION), Err(HEADER_MISMATCH)),
            (Some("2099-01-01"), Some("2099-01-01"), Err(UNSUPPORTED_VERSION)),
            (Some("2099-01-01"), None, Err(UNSUPPORTED_VERSION)),
        ] {
            let header_map =
                headers(&header.map(|value| ("mcp-protocol-version", value)).into_iter().collect::<Vec<_>>());
            let era = protocol_era(&header_map, &params(version)).map_err(|fault| fault.code);
            assert_eq!(era, expected, "{header:?} {version:?}");
        }
    }

    #[test]
    fn headers_of_a_modern_request_must_match_its_body() {
        let both = |method, name| headers(&[("mcp-method", method), ("mcp-name", name)]);
        let params_map = params(Some(MODERN_VERSION));
        assert!(check_headers(&both("tools/call", "list_monitors"), "tools/call", &params_map).is_ok());
        assert!(
            check_headers(&both("tools/call", "=?base64?bGlzdF9tb25pdG9ycw==?="), "tools/call", &params_map).is_ok()
        );
        assert!(check_headers(&headers(&[("mcp-method", "tools/list")]), "tools/list", &params_map).is_ok());
        for (invalid, method) in [
            (both("tools/list", "list_monitors"), "tools/call"),
            (both("tools/call", "other"), "tools/call"),
            (both("tools/call", "=?base64?!?="), "tools/call"),
            (headers(&[("mcp-method", "tools/call")]), "tools/call"),
            (headers(&[]), "tools/list"),
            (headers(&[("mcp-method", "a"), ("mcp-method", "tools/list")]), "tools/list"),
        ] {
            assert_eq!(check_headers(&invalid, method, &params_map).unwrap_err().code, HEADER_MISMATCH);
        }
        let bare = json!({ "_meta": {} }).as_object().cloned().unwrap();
        let list = headers(&[("mcp-method", "tools/list")]);
        assert_eq!(check_headers(&list, "tools/list", &bare).unwrap_err().code, INVALID_PARAMS);
    }
}
