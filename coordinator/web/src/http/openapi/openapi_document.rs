//! The OpenAPI 3.1 document, generated once from the operations and the response types.

use std::collections::BTreeMap;

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::operation::ApiOperation;
use super::{component_names, errors, examples, parameter_description, tags, webhooks};
use crate::http::legacy;

/// Version of the API description. The version in the paths is separate.
const VERSION: &str = "1.0.0";

const ABOUT: &str = "Everything the dashboard does. JSON in and JSON out; ids are stable; times are ISO 8601 in UTC \
unless stated otherwise. A time you send includes its offset (`Z`, `+01:00`, `+0100`); next to a `timezone` field, \
the offset may be left out.\n\nEvery request carries a key (`Authorization: Bearer plx_…`). A key may make 120 \
requests a minute; every response reports the remaining budget in `RateLimit-Limit`, `RateLimit-Remaining` and \
`RateLimit-Reset`.\n\nA write may carry an `Idempotency-Key`: a repeat with the same key and body within 24 hours \
returns the first response. If that response was over 8 KiB, the incident is returned in its current state, with \
`Idempotency-Answer: current` (404 if it was deleted). The newest 1,000 responses of a key are remembered, up to 2 \
MiB in total.\n\nIn a PATCH, a field that is left out keeps its value and null clears it. You may send back what you \
read: an unchanged field is ignored, and a changed field that this route can't change returns 400 with the route \
that does. Unknown fields are ignored; `warnings` in the response names those that look like typos. New fields and \
new enum values may be added to responses.";

/// Builds the document for a service at that base URL.
pub(super) fn document(base_url: &str, operations: &[ApiOperation]) -> Value {
    let mut generator = generator();
    let mut components = BTreeMap::new();
    let mut paths: Map<String, Value> = Map::new();
    for operation in operations {
        let described = operation_json(operation, &mut generator, &mut components);
        let path = paths.entry(operation.path).or_insert_with(|| json!({}));
        path[operation.method.as_str().to_lowercase()] = described;
    }
    let webhooks = webhooks::webhooks(&mut generator);
    components.extend(generator.take_definitions(true));
    components.extend(errors::schemas());
    let bodies = operations.iter().filter_map(|operation| operation.body.as_ref());
    for name in bodies.map(|body| body.name).chain(["Alert"]) {
        component_names::name_parts(name, &mut components);
    }
    examples::fill(&mut components);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Parallax API",
            "version": VERSION,
            "description": format!("{ABOUT}\n\n{}", legacy::DESCRIPTION),
            "contact": { "name": "The operator of this service", "url": base_url },
            "license": { "name": "Apache-2.0 OR MIT", "identifier": "Apache-2.0 OR MIT" },
        },
        "externalDocs": { "url": format!("{base_url}/api/v1/docs"), "description": "The human-readable API \
         reference." },
        "servers": [{ "url": format!("{base_url}/api/v1") }],
        "security": [{ "bearerAuth": [] }],
        "tags": tags(),
        "paths": paths,
        "webhooks": webhooks,
        "components": {
            "securitySchemes": {
                "bearerAuth": { "type": "http", "scheme": "bearer", "description": "An API key: `plx_…`." },
            },
            "parameters": {
                "IdempotencyKey": {
                    "name": "Idempotency-Key",
                    "in": "header",
                    "required": false,
                    "description": "A repeat with the same key and body within 24 hours returns the first response; \
                     if that was long, the incident in its current state.",
                    "schema": { "type": "string", "minLength": 1, "maxLength": 255 },
                    "example": "8e03978e-40d5-43e8-bc93-6894a57f9324",
                },
                "IfNoneMatch": {
                    "name": "If-None-Match",
                    "in": "header",
                    "required": false,
                    "description": "The `ETag` of an earlier response. Returns 304 if nothing has changed.",
                    "schema": { "type": "string" },
                    "example": errors::TAG,
                },
            },
            "headers": errors::headers(),
            "responses": errors::responses(),
            "schemas": components,
        },
    })
}

/// Returns the self-contained schema of a document, to validate responses against.
#[cfg(test)]
pub(in crate::http) fn standalone_schema(document: &super::operation::ResponseDocument) -> Value {
    let mut generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let mut schema = document.schema(&mut generator);
    let definitions = generator.take_definitions(true);
    if !definitions.is_empty() {
        schema["$defs"] = Value::Object(definitions);
    }
    schema
}

fn generator() -> SchemaGenerator {
    SchemaSettings::draft2020_12()
        .for_serialize()
        .with(|settings| settings.definitions_path = "/components/schemas".into())
        .into_generator()
}

fn operation_json(
    operation: &ApiOperation,
    generator: &mut SchemaGenerator,
    components: &mut BTreeMap<String, Value>,
) -> Value {
    let mut parameters: Vec<Value> = operation.path_parameters().map(path_parameter).collect();
    parameters.extend(operation.query.iter().map(|parameter| {
        json!({
            "name": parameter.name, "in": "query", "required": false,
            "description": parameter.about, "schema": parameter.schema, "example": parameter.example,
        })
    }));
    let extra_errors = match (operation.writes(), operation.runs_every_time) {
        (true, true) => None,
        (true, false) => Some("IdempotencyKey"),
        (false, _) => Some("IfNoneMatch"),
    };
    parameters.extend(extra_errors.map(|name| json!({ "$ref": format!("#/components/parameters/{name}") })));
    let headers = errors::response_headers(operation);
    let mut answer = json!({ "description": operation.response.about, "headers": headers });
    if let Some(document) = &operation.response.document {
        components.insert(document.name.to_owned(), document.schema(generator));
        answer["content"] = content(operation.response.media, document.name);
    }
    let mut responses = Map::new();
    responses.insert(operation.response.status.to_string(), answer);
    for (status, name) in errors::error_responses(operation) {
        responses.insert(status.to_owned(), json!({ "$ref": format!("#/components/responses/{name}") }));
    }
    let mut described = json!({
        "operationId": operation.id,
        "tags": [operation.tag],
        "summary": operation.summary,
        "parameters": parameters,
        "responses": responses,
    });
    if !operation.about.is_empty() {
        described["description"] = json!(operation.about);
    }
    if let Some(body) = &operation.body {
        components.insert(body.name.to_owned(), Value::Object(body.schema.clone()));
        described["requestBody"] =
            json!({ "required": body.is_required, "content": content("application/json", body.name) });
    }
    described
}

fn content(media: &str, component: &str) -> Value {
    json!({ (media): { "schema": { "$ref": format!("#/components/schemas/{component}") } } })
}

fn path_parameter(name: &str) -> Value {
    json!({
        "name": name, "in": "path", "required": true,
        "description": parameter_description(name), "schema": { "type": "string" }, "example": examples::id(name),
    })
}
