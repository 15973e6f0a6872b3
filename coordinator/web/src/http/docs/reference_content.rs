//! Content of the API reference, built from the API description.

use parallax_core::check::CheckKind;
use parallax_core::destination::ChannelKind;
use parallax_core::plan::{self, Plan};
use serde_json::Value;

use super::curl_commands::curl;
use super::schema_rows::Components;
use crate::http::{HttpContext, legacy, mcp, openapi};
use crate::views::api_reference::{
    ApiReference, ReferenceError, ReferenceGroup, ReferenceObject, ReferenceOperation, ReferencePlan as PlanRow,
    ReferenceRow, ReferenceTool, ReferenceWebhook, SAMPLES,
};

/// Builds the reference of the service behind that context.
pub(super) fn reference(context: &HttpContext) -> ApiReference {
    let service = &context.service;
    let description = openapi::description(service.base_url());
    let nothing = Value::Null;
    let components = Components(description.get("components").unwrap_or(&nothing));
    let text = |pointer: &str| description.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let limits = service.accounts.limits();
    ApiReference {
        base: service.base_url().to_owned(),
        version: text("/info/version").to_owned(),
        about: parallax_markdown::render_short(text("/info/description")),
        groups: groups(&description, &components),
        objects: objects(&components),
        webhooks: webhooks(&description, &components),
        errors: error_rows(&components),
        plans: Plan::ALL
            .map(|plan| PlanRow {
                name: plan.name().to_owned(),
                monitors: limits.monitors(plan),
                pages: plan::max_pages(plan),
                interval: limits.interval_ms(plan, CheckKind::Http).unwrap_or_default() / 1000,
                webhooks: plan.has_channel(ChannelKind::Webhook),
                regions: plan.uses_regions(),
                components: plan.has_components(),
            })
            .into(),
        requests: context.key_limit.limit(),
        tools: mcp::McpTools::shared().tool_list(true).into_iter().map(tool).collect(),
        public_tools: mcp::public_tools().iter().map(tool).collect(),
        samples: SAMPLES.into(),
        old_names: legacy::all_names().map(|(old, new)| (old.to_owned(), new.to_owned())).collect(),
    }
}

/// Groups the operations by tag, in the order of both.
fn groups<'a>(description: &'a Value, components: &Components<'a>) -> Vec<ReferenceGroup> {
    let paths = description.get("paths").and_then(Value::as_object);
    let all: Vec<(&str, &str, &'a Value)> = paths
        .into_iter()
        .flatten()
        .flat_map(|(path, methods)| {
            let methods = methods.as_object().into_iter().flatten();
            methods.map(move |(method, operation)| (path.as_str(), method.as_str(), operation))
        })
        .collect();
    let tags = description.get("tags").and_then(Value::as_array);
    let group = |tag: &'a Value| {
        let name = tag.get("name")?;
        let is_of = |operation: &Value| operation.pointer("/tags/0") == Some(name);
        let in_group = all.iter().filter(|(.., operation)| is_of(operation));
        let operations: Vec<ReferenceOperation> =
            in_group.map(|(path, method, it)| operation(path, method, it, components)).collect();
        let group = ReferenceGroup { name: text_of(tag, "name"), about: text_of(tag, "description"), operations };
        (!group.operations.is_empty()).then_some(group)
    };
    tags.into_iter().flatten().filter_map(group).collect()
}

fn operation<'a>(path: &str, method: &str, it: &'a Value, components: &Components<'a>) -> ReferenceOperation {
    let parameters = it.get("parameters").and_then(Value::as_array).into_iter().flatten();
    let answers = it.get("responses").and_then(Value::as_object);
    let is_good = |status: &str| status.starts_with('2');
    let success = answers.and_then(|all| all.iter().find(|(status, _)| is_good(status)));
    let schema = |parent: &'a Value| parent.pointer("/content/application~1json/schema");
    let body = it.get("requestBody").and_then(schema);
    let answer = success.and_then(|(_, answer)| schema(answer));
    let method = method.to_uppercase();
    ReferenceOperation {
        id: text_of(it, "operationId"),
        path: path.to_owned(),
        summary: text_of(it, "summary"),
        about: parallax_markdown::render_short(&text_of(it, "description")),
        writes: method != "GET",
        parameters: parameters.map(|parameter| self::parameter(parameter, components)).collect(),
        body: body.map(|body| components.rows(body)).unwrap_or_default(),
        status: success.map(|(status, _)| status.clone()).unwrap_or_default(),
        response: success.map(|(_, answer)| text_of(answer, "description")).unwrap_or_default(),
        fields: answer.map(|answer| components.rows(answer)).unwrap_or_default(),
        example: answer.and_then(|answer| example(answer, components)).map(pretty).unwrap_or_default(),
        errors: answers
            .into_iter()
            .flatten()
            .filter(|(status, _)| !is_good(status))
            .map(|(status, refusal)| (status.clone(), reference_words(refusal)))
            .collect(),
        curl: curl(&method, path, body.and_then(|body| example(body, components))),
        method,
    }
}

/// Builds the row of a parameter, which may be a shared one.
fn parameter<'a>(parameter: &'a Value, components: &Components<'a>) -> ReferenceRow {
    let shared_name = parameter.get("$ref").and_then(Value::as_str).and_then(|it| it.rsplit('/').next());
    let resolved = shared_name.and_then(|name| components.0.get("parameters")?.get(name)).unwrap_or(parameter);
    let location = match resolved.get("in").and_then(Value::as_str) {
        Some("path") => "path",
        Some("query") => "query",
        _ => "header",
    };
    ReferenceRow {
        name: text_of(resolved, "name"),
        location,
        required: resolved.get("required") == Some(&Value::Bool(true)),
        about: parallax_markdown::render_short(&text_of(resolved, "description")),
        ..resolved.get("schema").map(|schema| components.row(schema)).unwrap_or_default()
    }
}

/// Returns the objects a row may link to: components with fields, without the wrappers of responses.
fn objects<'a>(components: &Components<'a>) -> Vec<ReferenceObject> {
    let schemas = components.0.get("schemas").and_then(Value::as_object);
    schemas
        .into_iter()
        .flatten()
        .filter(|(_, schema)| schema.get("properties").is_some())
        .map(|(name, schema)| ReferenceObject {
            name: name.clone(),
            about: parallax_markdown::render_short(&text_of(schema, "description")),
            fields: components.rows(schema),
            example: schema.pointer("/examples/0").map(pretty).unwrap_or_default(),
        })
        .collect()
}

fn webhooks<'a>(description: &'a Value, components: &Components<'a>) -> Vec<ReferenceWebhook> {
    let webhooks = description.get("webhooks").and_then(Value::as_object);
    let hook = |webhook: &'a Value| {
        let post = webhook.get("post")?;
        let headers = post.get("parameters").and_then(Value::as_array).into_iter().flatten();
        let headers =
            headers.map(|header| ReferenceRow { limits: text_of(header, "example"), ..parameter(header, components) });
        let body = post.pointer("/requestBody/content/application~1json/schema");
        Some(ReferenceWebhook {
            id: text_of(post, "operationId"),
            summary: text_of(post, "summary"),
            about: parallax_markdown::render_short(&text_of(post, "description")),
            headers: headers.collect(),
            fields: body.map(|body| components.rows(body)).unwrap_or_default(),
        })
    };
    webhooks.into_iter().flatten().filter_map(|(_, webhook)| hook(webhook)).collect()
}

/// Returns the shared error responses by status, plus 405, which the router returns and no operation lists.
fn error_rows(components: &Components<'_>) -> Vec<ReferenceError> {
    let statuses = [
        ("400", "BadRequest"),
        ("401", "Unauthenticated"),
        ("403", "ReadOnly"),
        ("404", "NotFound"),
        ("422", "PlanLimit"),
        ("429", "RateLimited"),
        ("500", "Internal"),
        ("503", "Overloaded"),
    ];
    let responses = components.0.get("responses");
    let mut refusals: Vec<ReferenceError> = statuses
        .into_iter()
        .filter_map(|(status, name)| {
            let response = responses?.get(name)?;
            let content = response.pointer("/content/application~1json")?;
            let single_example = content.get("example").into_iter();
            let several = content.get("examples").and_then(Value::as_object).into_iter().flatten();
            let all = single_example.chain(several.filter_map(|(_, example)| example.get("value")));
            let code = |example: &Value| Some(example.pointer("/error/code")?.as_str()?.to_owned());
            Some(ReferenceError {
                status: status.to_owned(),
                codes: all.filter_map(code).collect(),
                about: text_of(response, "description"),
            })
        })
        .collect();
    let at = refusals.iter().position(|refusal| refusal.status == "422").unwrap_or(refusals.len());
    let about = "The path has other methods; `Allow` lists them.".replace('`', "");
    let refusal = ReferenceError { status: "405".to_owned(), codes: vec!["method_not_allowed".to_owned()], about };
    refusals.insert(at, refusal);
    refusals
}

fn tool(definition: &Value) -> ReferenceTool {
    ReferenceTool {
        name: text_of(definition, "name"),
        title: text_of(definition, "description")
            .split_once('.')
            .map(|(first, _)| first.to_owned())
            .unwrap_or_default(),
        writes: definition.pointer("/annotations/readOnlyHint") == Some(&Value::Bool(false)),
    }
}

/// Returns the example of a schema, or of the schema it refers to.
fn example<'a>(schema: &'a Value, components: &Components<'a>) -> Option<&'a Value> {
    let reference = schema.get("$ref").and_then(Value::as_str);
    let schema = reference.and_then(|it| components.find(it)).map_or(schema, |(_, schema)| schema);
    schema.pointer("/examples/0")
}

fn text_of(value: &Value, name: &str) -> String {
    value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn reference_words(reference: &Value) -> String {
    let name = reference.get("$ref").and_then(Value::as_str).and_then(|it| it.rsplit('/').next());
    let mut spaced = String::new();
    for character in name.unwrap_or_default().chars() {
        if character.is_uppercase() && !spaced.is_empty() {
            spaced.push(' ');
        }
        spaced.extend(character.to_lowercase());
    }
    spaced
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}
