//! The reference as readers get it, and its code samples against a signed request.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use super::*;
use crate::http::openapi;
use crate::http::tests::TestClient;
use crate::views::api_reference::SAMPLES;

const PATH: &str = "/api/v1/docs";

/// Returns the text between each occurrence of a mark and the next double quote.
fn quoted<'a>(text: &'a str, mark: &str) -> Vec<&'a str> {
    text.split(mark).skip(1).filter_map(|rest| rest.split('"').next()).collect()
}

#[tokio::test]
async fn the_reference_needs_no_key_and_may_be_cached() {
    let client = TestClient::new().await;
    let page = client.send("GET", PATH, &[], "").await;
    assert_eq!((page.status, page.headers["content-type"].to_str().unwrap()), (200, HTML));
    assert!(page.text.starts_with("<!doctype html>"), "{}", page.text.get(..80).unwrap_or_default());
    let policy = page.headers["content-security-policy"].to_str().unwrap();
    assert!(policy.contains("default-src 'none'") && policy.contains("script-src 'self'"), "{policy}");
    assert!(!page.text.contains("style=\"") && !page.text.contains("<style") && !page.text.contains("onclick"));
    assert!(page.headers["cache-control"].to_str().unwrap().starts_with("public, max-age="));
    assert_eq!(page.headers["vary"], "accept-encoding");
    assert_eq!(page.headers["link"], "<https://status.example/api/v1/openapi.json>; rel=\"service-desc\"");
    let packed = client.send("GET", PATH, &[("accept-encoding", "br, gzip")], "").await;
    assert_eq!(packed.headers["content-encoding"], "br");
    assert!(packed.bytes.len() * 4 < page.bytes.len(), "{} of {}", packed.bytes.len(), page.bytes.len());
    let tag = page.headers["etag"].to_str().unwrap().to_owned();
    let not_modified = client.send("GET", PATH, &[("if-none-match", &tag)], "").await;
    assert_eq!((not_modified.status, not_modified.bytes.len()), (304, 0));
    assert_eq!(client.call(&client.read_key, "POST", PATH, Value::Null).await.status, 405);
    let described = client.send("GET", "/api/v1/openapi.json", &[], "").await.body;
    assert_eq!(described["externalDocs"]["url"], format!("https://status.example{PATH}"));
    for asset in quoted(&page.text, "\"/assets/") {
        assert_eq!(client.send("GET", &format!("/assets/{asset}"), &[], "").await.status, 200, "{asset}");
    }
    assert!(client.send("GET", "/", &[], "").await.text.contains(PATH), "the root leads to it");
}

#[tokio::test]
async fn the_reference_is_complete_and_every_link_has_a_target() {
    let client = TestClient::new().await;
    let page = client.send("GET", PATH, &[], "").await.text;
    let ids = quoted(&page, " id=\"");
    let targets: BTreeSet<&str> = ids.iter().copied().collect();
    assert_eq!(targets.len(), ids.len(), "ids are unique");
    for link in quoted(&page, "href=\"#") {
        assert!(targets.contains(link), "#{link} leads nowhere");
    }
    let operations = openapi::operations();
    for operation in &operations {
        assert!(targets.contains(operation.id), "{}", operation.id);
        for field in operation.body.iter().flat_map(|body| body.schema["properties"].as_object().unwrap().keys()) {
            assert!(page.contains(&format!("<code>{field}</code>")), "{} {field}", operation.id);
        }
    }
    for part in [
        "start",
        "errors",
        "limits",
        "states",
        "figures",
        "pings",
        "webhooks",
        "verify",
        "mcp",
        "versions",
        "receiveAlert",
        "object-Monitor",
        "object-AlertRound",
    ] {
        assert!(targets.contains(part), "{part}");
    }
    for text in [
        "1 to 80 characters",
        "curl -X POST &quot;$API/pages/$PAGE/monitors&quot;",
        "plan_limit",
        "idempotency_key_reused",
        "method_not_allowed",
        crate::http::legacy::OLD_TOOLS[0].0,
        "went-slow",
        "Deprecation: @1789344000",
    ] {
        assert!(page.replace("&#34;", "&quot;").contains(text), "{text}");
    }
    let limits = client.world.service.accounts.limits();
    for monitors in limits.monitors {
        assert!(page.contains(&format!("<td>{monitors}</td>")), "{monitors}");
    }
    assert!(!page.contains("{{") && !page.contains("{%"));
}

/// Returns the webhook of the API description: its secret, body and headers by their lower-case names.
fn signed() -> Value {
    let description = openapi::description("https://status.example");
    let webhook = &description["webhooks"]["alert"]["post"];
    let headers = webhook["parameters"].as_array().unwrap().iter();
    let headers: serde_json::Map<String, Value> =
        headers.map(|header| (header["name"].as_str().unwrap().to_lowercase(), header["example"].clone())).collect();
    let body = webhook["description"].as_str().unwrap().split("```").nth(1).unwrap().trim().to_owned();
    json!({ "secret": openapi::EXAMPLE_SECRET, "body": body, "headers": headers })
}

/// Output of a sample's caller: one result for each valid or invalid request, in this order.
const CASES: &str = "true false false true false false false";

#[test]
fn the_samples_recognize_a_genuine_webhook() {
    let folder = tempfile::TempDir::new().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("signed.json"), signed().to_string()).unwrap();
    for (sample, (program, file, caller, call)) in SAMPLES.iter().filter(|sample| sample.language != "Go").zip([
        ("python3", "verify.py", "call.py", PYTHON),
        ("node", "verify.mjs", "call.mjs", NODE),
        ("php", "verify.php", "call.php", PHP),
        ("ruby", "verify.rb", "call.rb", RUBY),
    ]) {
        fs::write(at(file), sample.code).unwrap();
        fs::write(at(caller), call).unwrap();
        let Ok(ran) = Command::new(program).arg(caller).current_dir(folder.path()).output() else {
            eprintln!("{program} is not installed; its sample was not run");
            continue;
        };
        let (output, faults) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
        assert_eq!(output.split_whitespace().collect::<Vec<_>>().join(" "), CASES, "{program}: {faults}");
    }
}

const PYTHON: &str = r#"
import json
from verify import verify, verify_standard

it = json.load(open("signed.json"))
secret, body, headers = it["secret"], it["body"].encode(), it["headers"]
now = int(headers["webhook-timestamp"])
given = headers["x-service-signature"]
rotated = {**headers, "webhook-signature": "v1,AAAA " + headers["webhook-signature"]}
for is_good in [
    verify(secret, body, given),
    verify(secret, body + b" ", given),
    verify(secret, body, "sha256=\u00e9"),
    verify_standard(secret, body, rotated, now + 299),
    verify_standard(secret, body + b" ", headers, now),
    verify_standard(secret, body, headers, now + 301),
    verify_standard(secret, body, {}, now),
]:
    print(str(is_good).lower())
"#;

const NODE: &str = r#"
import { readFileSync } from "node:fs";
import { verify, verifyStandard } from "./verify.mjs";

const { secret, body: text, headers } = JSON.parse(readFileSync("signed.json"));
const body = Buffer.from(text), more = Buffer.from(`${text} `);
const now = Number(headers["webhook-timestamp"]);
const given = headers["x-service-signature"];
const rotated = { ...headers, "webhook-signature": `v1,AAAA ${headers["webhook-signature"]}` };
for (const isGood of [
  verify(secret, body, given),
  verify(secret, more, given),
  verify(secret, body, "sha256=\u00e9"),
  verifyStandard(secret, body, rotated, now + 299),
  verifyStandard(secret, more, headers, now),
  verifyStandard(secret, body, headers, now + 301),
  verifyStandard(secret, body, {}, now),
]) console.log(isGood);
"#;

const PHP: &str = r#"<?php
require 'verify.php';

$it = json_decode(file_get_contents('signed.json'), true);
['secret' => $secret, 'body' => $body, 'headers' => $headers] = $it;
$now = (int) $headers['webhook-timestamp'];
$given = $headers['x-service-signature'];
$rotated = ['webhook-signature' => 'v1,AAAA ' . $headers['webhook-signature']] + $headers;
foreach ([
    verify($secret, $body, $given),
    verify($secret, "$body ", $given),
    verify($secret, $body, "sha256=\u{e9}"),
    verify_standard($secret, $body, $rotated, $now + 299),
    verify_standard($secret, "$body ", $headers, $now),
    verify_standard($secret, $body, $headers, $now + 301),
    verify_standard($secret, $body, [], $now),
] as $is_good) {
    echo $is_good ? "true\n" : "false\n";
}
"#;

const RUBY: &str = r#"
require "json"
require_relative "verify"

it = JSON.parse(File.read("signed.json"))
secret, body, headers = it.values_at("secret", "body", "headers")
now = headers["webhook-timestamp"].to_i
given = headers["x-service-signature"]
rotated = headers.merge("webhook-signature" => "v1,AAAA " + headers["webhook-signature"])
[
  verify(secret, body, given),
  verify(secret, body + " ", given),
  verify(secret, body, "sha256=\u00e9"),
  verify_standard(secret, body, rotated, now + 299),
  verify_standard(secret, body + " ", headers, now),
  verify_standard(secret, body, headers, now + 301),
  verify_standard(secret, body, {}, now),
].each { |is_good| puts is_good }
"#;
