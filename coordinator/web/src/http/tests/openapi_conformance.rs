//! Tests that the API conforms to its OpenAPI description: every operation, field and bound. New operations and fields
//! are covered automatically, and need an entry here only if they need special valid values.

mod access;
mod bounds;
mod hostile_bodies;
mod nulls;
mod values;

use std::cell::Cell;
use std::collections::BTreeMap;

use parallax_core::machine::MachineView;
use parallax_core::time::{DAY, HOUR, Timestamp};
use serde_json::{Value, json};

use super::*;
use crate::http::openapi::operation::ApiOperation;
use crate::http::openapi::operations;

/// Ids by the names of path parameters.
type Ids = BTreeMap<&'static str, String>;

/// Fixture: a page with one of everything.
struct ConformanceFixture {
    client: TestClient,
    ids: Ids,
    serial: Cell<u32>,
}

impl ConformanceFixture {
    async fn new() -> Self {
        let client = TestClient::new().await;
        client.world.receive();
        let page = client.world.shop.id.to_string();
        let shop = Self { client, ids: Ids::new(), serial: Cell::new(0) };
        Self { ids: shop.create_resources(page).await, ..shop }
    }

    /// Creates one of everything on a page.
    async fn create_resources(&self, page: String) -> Ids {
        let mut ids = Ids::from([("pageId", page)]);
        for (parameter, path, name, body) in [
            ("monitorId", "monitors", "monitor", json!({ "url": "a.example" })),
            ("incidentId", "incidents", "incident", json!({ "title": "x" })),
            ("deployId", "deploys", "deploy", json!({ "version": "1" })),
            ("subscriberId", "subscribers", "subscriber", json!({ "email": self.mailbox() })),
            ("destinationId", "destinations", "destination", hook()),
        ] {
            let created = self.send("POST", &format!("/pages/{}/{path}", ids["pageId"]), body).await;
            assert_eq!(created.status, 201, "{created:?}");
            ids.insert(parameter, text_of(&created.body[name]["id"]));
        }
        let test = format!("/pages/{}/destinations/{}/test", ids["pageId"], ids["destinationId"]);
        let tested = self.send("POST", &test, Value::Null).await;
        ids.insert("deliveryId", text_of(&tested.body["delivery"]["id"]));
        ids
    }

    /// Returns a unique number.
    fn next(&self) -> u32 {
        self.serial.set(self.serial.get() + 1);
        self.serial.get()
    }

    /// Returns a unique email address.
    fn mailbox(&self) -> String {
        format!("reader{}@example.com", self.next())
    }

    /// Returns the time `millis` from now.
    fn time_from_now(&self, millis: i64) -> Timestamp {
        self.client.world.service.now() + millis
    }

    /// Sends a request with the write key, in a minute of its own, so that no rate limit is reached.
    async fn send(&self, method: &str, path: &str, body: Value) -> TestResponse {
        self.client.world.clock.set(self.time_from_now(60_000));
        self.client.call(&self.client.write_key, method, &format!("/api/v1{path}"), body).await
    }

    /// Fills the path of an operation with ids.
    fn path(operation: &ApiOperation, ids: &Ids) -> String {
        operation.path_parameters().fold(operation.path.to_owned(), |path, parameter| {
            path.replace(&format!("{{{parameter}}}"), ids.get(parameter).map_or("missing", String::as_str))
        })
    }

    /// Prepares a request to test a field: ids for the path, and a body that is valid without the field.
    async fn valid_request(&self, operation: &ApiOperation, field: &str) -> (Ids, Value) {
        let mut ids = self.ids.clone();
        let body = match operation.id {
            "createPage" => json!({ "name": "New", "slug": format!("page-{}", self.next()) }),
            "createMonitor" | "testMonitor" => monitor(field),
            "updateMonitor" => {
                ids.insert("monitorId", self.create("monitor", monitor(field)).await);
                json!({})
            }
            "updateMonitors" => json!({ "monitorIds": ["mon_none"], "set": {} }),
            "acknowledgeOutage" => {
                let down = MachineView { outage_since: Some(self.time_from_now(0)), ..MachineView::default() };
                self.client.world.views.lock().unwrap().insert(ids["monitorId"].parse().unwrap(), down);
                json!({})
            }
            "createIncident" => self.incident(field),
            "updateIncident" => {
                ids.insert("incidentId", self.create("incident", self.incident(field)).await);
                json!({})
            }
            // The message is optional only when maintenance is completed.
            "postUpdate" if field == "message" => {
                ids.insert("incidentId", self.create("incident", self.incident("startsAt")).await);
                json!({ "status": "completed" })
            }
            "postUpdate" => {
                ids.insert("incidentId", self.create("incident", self.incident("")).await);
                json!({ "message": "x" })
            }
            "createDeploy" => json!({ "version": "1" }),
            "createDestination" => self.destination(field),
            "updateDestination" => {
                ids.insert("destinationId", self.create("destination", self.destination(field)).await);
                json!({})
            }
            "createSubscriber" => json!({ "email": self.mailbox() }),
            "importSubscribers" => json!({ "csv": self.mailbox() }),
            "updatePage" | "updatePageAddress" | "updateAlerts" | "updateMonitorOrder" => json!({}),
            other => panic!("add a valid body for {other}"),
        };
        (ids, body)
    }

    /// Body of an incident, or of a maintenance window if the field belongs to one.
    fn incident(&self, field: &str) -> Value {
        let mut body = json!({ "title": "x" });
        if matches!(field, "startsAt" | "endsAt" | "repeat" | "timezone") {
            body["kind"] = json!("maintenance");
            body["startsAt"] = json!(self.time_from_now(DAY).to_string());
            body["endsAt"] = json!(self.time_from_now(DAY + 2 * HOUR).to_string());
            body["repeat"] = json!("weekly");
        }
        if field == "resolvedAt" {
            body["startedAt"] = json!(self.time_from_now(-2 * HOUR).to_string());
        }
        body
    }

    /// Body of a destination of a type that has the field.
    fn destination(&self, field: &str) -> Value {
        match field {
            "to" => json!({ "type": "email", "name": "x", "to": self.mailbox() }),
            "token" => json!({ "type": "ntfy", "name": "x", "url": "https://ntfy.example/topic" }),
            "chat" => json!({ "type": "telegram", "name": "x", "token": "123456:ABC-def", "chat": "@shop" }),
            "key" => json!({ "type": "pagerduty", "name": "x", "key": "0".repeat(32) }),
            _ => hook(),
        }
    }

    /// Creates another resource on the page and returns its id.
    async fn create(&self, kind: &str, body: Value) -> String {
        let created = self.send("POST", &format!("/pages/{}/{kind}s", self.ids["pageId"]), body).await;
        assert_eq!(created.status, 201, "{created:?}");
        text_of(&created.body[kind]["id"])
    }

    /// Deletes what a test created, so that no plan limit is reached.
    async fn clear(&self, operation: &ApiOperation, ids: &Ids, response: &TestResponse) {
        let created = response.headers.get("location").filter(|_| operation.id != "postUpdate");
        let mut paths: Vec<String> = created.iter().filter_map(|it| it.to_str().ok().map(str::to_owned)).collect();
        for (parameter, kind) in
            [("monitorId", "monitors"), ("incidentId", "incidents"), ("destinationId", "destinations")]
        {
            if ids[parameter] != self.ids[parameter] {
                paths.push(format!("/api/v1/pages/{}/{kind}/{}", ids["pageId"], ids[parameter]));
            }
        }
        for path in paths {
            let path = path.strip_prefix("/api/v1").unwrap();
            assert_eq!(self.send("DELETE", path, Value::Null).await.status, 204, "{path}");
        }
    }
}

/// Body of a monitor of a type that has the field.
fn monitor(field: &str) -> Value {
    let mut body = match field {
        // The mode is shown only with a keyword.
        "keywordMode" => return json!({ "url": "https://a.example", "keyword": "ok" }),
        "host" => json!({ "type": "ping" }),
        "port" => json!({ "type": "tcp" }),
        "dnsType" | "dnsExpect" => json!({ "type": "dns" }),
        "warnDays" => json!({ "type": "certificate" }),
        "periodMinutes" | "graceMinutes" => {
            return json!({ "type": "heartbeat", "name": "x", "periodMinutes": 5 });
        }
        "vendorUrl" | "vendorComponent" => {
            return json!({ "type": "component", "name": "x", "vendorUrl": "https://www.githubstatus.com" });
        }
        _ => return json!({ "url": "https://a.example" }),
    };
    body["host"] = json!("a.example");
    if field == "port" {
        body["port"] = json!(1);
    }
    body
}

fn hook() -> Value {
    json!({ "type": "webhook", "name": "x", "url": "https://hooks.example.com/x" })
}

fn text_of(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is not a string")).to_owned()
}

/// Returns true if the response is an error in the format of the contract, with the given status and code.
fn is_refused(response: &TestResponse, status: u16, code: &str) -> bool {
    let error = &response.body["error"];
    response.status == status
        && error["code"] == code
        && error["message"].as_str().is_some_and(|message| !message.is_empty())
}
