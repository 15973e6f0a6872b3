//! Every signed-in route of the dashboard: which role may use it, that another account's things are not found, and
//! that no form of another site and no GET changes anything.

use std::collections::BTreeMap;

use parallax_core::id::{AgentId, InvitationId};
use parallax_core::key::KeyAccess;
use parallax_core::plan::Plan;
use parallax_core::role::Role;
use parallax_core::time::HOUR;
use parallax_core::vantage::Region;
use parallax_service::accounts::keys::NewKey;
use parallax_service::mesh::{MeshState, OpenInvitation};
use parallax_service::people::soft_authenticator::SoftPasskey;
use parallax_service::people::{NewPerson, SessionToken};
use parallax_service::test_world::START;
use serde_json::{Value, json};

use super::dashboard_route_table::Users::{Editors, Members, Operators, Owners};
use super::dashboard_route_table::{LOGGED_READS, NAMES_NOTHING, REPEATABLE, ROUTES, UNDO};
use super::{SignedInBrowser, TestClient, TestResponse, installation};
use crate::http::dashboard;
use crate::http::route::HttpRoute;

/// Origin of the dashboard.
const ORIGIN: &str = "https://status.example";

/// Ids in paths, by the name of the parameter.
#[derive(Debug, Clone)]
pub(super) struct Things(pub(super) BTreeMap<&'static str, String>);

impl Things {
    /// Ids of nothing, each of the right kind.
    fn unknown() -> Self {
        let kinds = ["acc", "agt", "dep", "dlv", "dst", "inc", "inv", "key", "mon", "per", "pg", "sub"];
        let [
            account,
            agent,
            deploy,
            delivery,
            destination,
            incident,
            invitation,
            key,
            monitor,
            person,
            page,
            subscriber,
        ] = kinds.map(|kind| format!("{kind}_0000000000000000000000000a"));
        Self(BTreeMap::from([
            ("account", account),
            ("agent", agent),
            ("delivery", delivery),
            ("deploy", deploy),
            ("destination", destination),
            ("incident", incident),
            ("invitation", invitation),
            ("key", key),
            ("monitor", monitor),
            ("memberInvitation", "0".repeat(16)),
            ("page", page),
            ("passkey", "0".repeat(32)),
            ("person", person),
            ("session", "0".repeat(16)),
            ("subscriber", subscriber),
        ]))
    }

    fn with_page(&self, page: &str) -> Self {
        let mut things = self.clone();
        things.0.insert("page", page.to_owned());
        things
    }

    /// The path of a route.
    pub(super) fn path(&self, pattern: &str) -> String {
        let part = |part: &str| {
            let name = part.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
            name.map_or_else(|| part.to_owned(), |name| self.0[name].clone())
        };
        pattern.split('/').map(part).collect::<Vec<_>>().join("/")
    }
}

impl TestClient {
    /// One thing of each kind on a page, and a second session of the person.
    pub(super) async fn things(&self, key: &str, page: &str, browser: &SignedInBrowser) -> Things {
        let made = async |path: &str, name: &str, body: Value| {
            let made = self.call(key, "POST", &format!("/api/v1/pages/{page}/{path}"), body).await;
            assert!(matches!(made.status, 200..=202), "{path}: {made:?}");
            made.body[name]["id"].as_str().unwrap().to_owned()
        };
        let hook = json!({ "type": "webhook", "name": "Ops", "url": "https://hooks.example.com/x" });
        let destination = made("destinations", "destination", hook).await;
        let people = &self.world.service.people;
        let token = SessionToken::parse(browser.cookie.split_once('=').unwrap().1).unwrap();
        let current = people.authenticate(&token).unwrap().unwrap();
        let account = current.session.account;
        let email = format!("member-of-{account}@example.com");
        let new = NewPerson { email, name: String::new(), role: Role::Owner, password: None };
        let member = people.add_as_operator(account, &new).await.unwrap();
        let member_session =
            people.authenticate(&people.test_session(account, member.id).await.token).unwrap().unwrap();
        let invited = format!("invited-to-{account}@example.com");
        people.invite(&member_session, (&invited, Role::Viewer), None).await.unwrap();
        let invitation = people.invitations(&member_session.caller()).await.unwrap().remove(0);
        let spare = NewKey { account, name: "Spare".to_owned(), access: KeyAccess::Read, page: None };
        Things(BTreeMap::from([
            ("account", account.to_string()),
            ("agent", AgentId::from_u128(1).to_string()),
            ("delivery", made(&format!("destinations/{destination}/test"), "delivery", Value::Null).await),
            ("deploy", made("deploys", "deploy", json!({ "version": "1" })).await),
            ("destination", destination),
            ("incident", made("incidents", "incident", json!({ "title": "Broken" })).await),
            ("invitation", InvitationId::from_u128(1).to_string()),
            ("key", self.world.service.keys.create(spare).await.unwrap().0.id.to_string()),
            ("monitor", made("monitors", "monitor", json!({ "url": "a.example", "name": "Front" })).await),
            ("memberInvitation", invitation.id),
            ("page", page.to_owned()),
            ("passkey", people.test_passkey(current.person.id, &mut SoftPasskey::new(ORIGIN)).await),
            ("person", member.id.to_string()),
            ("session", people.test_session(account, current.person.id).await.session.id.short()),
            ("subscriber", made("subscribers", "subscriber", json!({ "email": format!("{page}@example.com") })).await),
        ]))
    }

    /// The browser after an answer that may give it a new session.
    fn with_new_session(&self, browser: SignedInBrowser, answer: &TestResponse) -> SignedInBrowser {
        let cookie = answer.headers.get("set-cookie").and_then(|cookie| cookie.to_str().ok()).unwrap_or_default();
        let token = cookie.split(';').next().and_then(|pair| pair.strip_prefix("__Host-plx="));
        let Some(token) = token.and_then(SessionToken::parse) else { return browser };
        let cookie = format!("__Host-plx={}", token.reveal());
        SignedInBrowser { cookie, form_token: self.world.service.people.form_token(token.id()) }
    }

    /// Sends a request of the dashboard. A form has its token and the fields without which a thing isn't looked for: a
    /// role is judged before a form.
    async fn request(&self, browser: &SignedInBrowser, method: &str, path: &str) -> TestResponse {
        // Limits of requests are not under test.
        self.world.clock.set(self.world.service.now() + 300);
        if method == "GET" {
            self.open(browser, path).await
        } else {
            self.submit(browser, path, &[("do", "pause"), ("role", "viewer")]).await
        }
    }
}

/// A client whose deliveries arrive, with an agent and an invitation.
async fn client() -> TestClient {
    let client = TestClient::new().await;
    client.world.receive();
    client.world.service.accounts.set_plan(client.world.foreign.account, Plan::Pro).await.unwrap();
    client.world.members.set(MeshState {
        agents: vec![installation::agent(1, "fra1", Region::Europe, "AS64496")],
        invitations: vec![OpenInvitation {
            id: InvitationId::from_u128(1),
            name: "cpt1".to_owned(),
            region: Region::Africa,
            network: "AS64508".to_owned(),
            expires_at: START + HOUR,
        }],
        ..MeshState::default()
    });
    client
}

/// Things of the shop and a browser of its owner; things of the other account.
async fn two_accounts(client: &TestClient) -> (SignedInBrowser, Things, Things) {
    let owner = client.sign_in(Role::Owner).await;
    let own = client.things(&client.write_key, &client.world.shop.id.to_string(), &owner).await;
    let stranger = client.world.signed_in_at(&client.stranger_account().await, Role::Owner).await;
    let stranger = SignedInBrowser::of(client, &stranger);
    let foreign = client.things(&client.foreign_key, &client.world.foreign.id.to_string(), &stranger).await;
    (owner, own, foreign)
}

#[test]
fn the_table_has_every_signed_in_route() {
    let mut routes: Vec<(String, &str)> = dashboard::rows()
        .into_iter()
        .flat_map(|(pattern, methods)| methods.into_iter().map(move |(method, route)| (method, pattern, route)))
        .filter(|(_, _, route)| matches!(route, HttpRoute::SignedIn(_)))
        .map(|(method, pattern, _)| (method.to_string(), pattern))
        .filter(|(method, pattern)| (method.as_str(), *pattern) != UNDO)
        .collect();
    let mut table: Vec<_> = ROUTES.iter().map(|(method, pattern, _)| ((*method).to_owned(), *pattern)).collect();
    routes.sort();
    table.sort();
    let missing: Vec<_> = routes.iter().filter(|route| !table.contains(route)).collect();
    let extra: Vec<_> = table.iter().filter(|route| !routes.contains(route)).collect();
    assert!(missing.is_empty() && extra.is_empty(), "not in the table: {missing:?}; no route: {extra:?}");
    assert_eq!(routes.len(), table.len(), "each route has one row");
}

#[tokio::test]
async fn each_role_uses_the_routes_of_its_role_alone() {
    for (role, is_operator) in [(Role::Viewer, false), (Role::Editor, false), (Role::Owner, false), (Role::Owner, true)]
    {
        let client = client().await;
        let mut browser = if is_operator { installation::operator(&client).await } else { client.sign_in(role).await };
        let things = client.things(&client.write_key, &client.world.shop.id.to_string(), &browser).await;
        let mut wrong = Vec::new();
        for (method, pattern, users) in ROUTES {
            let may = match users {
                Members => true,
                Editors => role != Role::Viewer,
                Owners => role == Role::Owner,
                Operators => is_operator,
            };
            let answer = client.request(&browser, method, &things.path(pattern)).await;
            let refusal = format!("Your role ({}) may not do this.", role.name());
            let is_right = match users {
                _ if may && NAMES_NOTHING.contains(&pattern) => matches!(answer.status, 200 | 303 | 404),
                _ if may => matches!(answer.status, 200 | 201 | 303 | 400 | 409 | 422 | 429),
                Operators => answer.status == 404,
                _ => answer.status == 403 && answer.text.contains(&refusal),
            };
            if !is_right {
                wrong.push(format!("{} {method} {pattern}", answer.status));
            }
            browser = client.with_new_session(browser, &answer);
        }
        assert!(wrong.is_empty(), "{role:?}, operator {is_operator}: {wrong:#?}");
    }
}

#[tokio::test]
async fn every_link_and_form_leads_to_a_route() {
    let client = client().await;
    let browser = installation::operator(&client).await;
    let things = client.things(&client.write_key, &client.world.shop.id.to_string(), &browser).await;
    let is_of = |path: &str, pattern: &str| {
        let is_same = |(part, name): (&str, &str)| part == name || (name.starts_with('{') && !part.is_empty());
        path.split('/').count() == pattern.split('/').count() && path.split('/').zip(pattern.split('/')).all(is_same)
    };
    let leads = |method: &str, path: &str| {
        let known = ROUTES.iter().map(|(known, pattern, _)| (*known, *pattern)).chain([UNDO]);
        known.into_iter().any(|(known, pattern)| known == method && is_of(path, pattern))
    };
    let (mut links, mut wrong) = (0, Vec::new());
    for (_, pattern, _) in ROUTES.iter().filter(|(method, pattern, _)| *method == "GET" && *pattern != "/app/live") {
        let screen = client.open(&browser, &things.path(pattern)).await.text;
        for (attribute, methods) in [("href=\"", ["GET", "GET"]), ("action=\"", ["POST", "GET"])] {
            for rest in screen.split(attribute).skip(1) {
                let path = rest.split(['"', '?', '#']).next().unwrap_or_default();
                if path.starts_with("/app") {
                    links += 1;
                    if !methods.iter().any(|method| leads(method, path)) {
                        wrong.push(format!("{pattern}: {attribute}{path}"));
                    }
                }
            }
        }
    }
    assert!(links > 500 && wrong.is_empty(), "{links} links, {wrong:#?}");
}

#[tokio::test]
async fn things_of_another_account_are_answered_like_none() {
    let client = client().await;
    let (owner, own, foreign) = two_accounts(&client).await;
    let (unknown, blog) = (Things::unknown(), client.world.blog.id.to_string());
    let before = foreign_state(&client).await;
    let mut wrong = Vec::new();
    for (method, pattern, users) in ROUTES {
        if users == Operators || !pattern.contains('{') {
            continue;
        }
        let expected = client.request(&owner, method, &unknown.path(pattern)).await;
        let status = if REPEATABLE.contains(&pattern) { 303 } else { 404 };
        let is_said = status == 303 || expected.text.contains("Not found, or you have no access.");
        assert!(expected.status == status && is_said, "{pattern}: {} {}", expected.status, expected.text);
        let mut others = vec![foreign.clone(), foreign.with_page(&own.0["page"]), own.with_page(&foreign.0["page"])];
        if pattern.starts_with("/app/account/") {
            others.truncate(1);
        } else if pattern.matches('{').count() == 1 {
            others.swap_remove(1);
        } else {
            // A thing is found on its own page alone.
            others.extend([unknown.with_page(&own.0["page"]), own.with_page(&blog)]);
        }
        for things in others {
            let path = things.path(pattern);
            let answer = client.request(&owner, method, &path).await;
            let location = |answer: &TestResponse| answer.headers.get("location").cloned();
            let is_like_none = answer.text == expected.text && location(&answer) == location(&expected);
            if answer.status != status || !is_like_none {
                wrong.push(format!("{} {method} {path}", answer.status));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(foreign_state(&client).await, before, "nothing of the other account changed");
}

/// Everything of the other account.
async fn foreign_state(client: &TestClient) -> Vec<Value> {
    let page = format!("/api/v1/pages/{}", client.world.foreign.id);
    let mut state = Vec::new();
    for rest in ["", "/monitors", "/incidents", "/deploys", "/destinations", "/subscribers", "/alerts", "/deliveries"] {
        state.push(client.call(&client.foreign_key, "GET", &format!("{page}{rest}"), Value::Null).await.body);
    }
    state.push(json!(client.world.service.keys.list(client.world.foreign.account).await.unwrap().len()));
    state
}

#[tokio::test]
async fn a_get_and_a_form_of_another_site_change_nothing() {
    let client = client().await;
    let (owner, own, _) = two_accounts(&client).await;
    let token = format!("form_token={}", owner.form_token);
    // The first request of a session records its use.
    client.open(&owner, "/app").await;
    let before = client.world.revision().await;
    for (method, pattern, _) in ROUTES {
        let path = own.path(pattern);
        if method == "GET" {
            client.open(&owner, &path).await;
            continue;
        }
        let form = ("content-type", "application/x-www-form-urlencoded");
        let cookie = ("cookie", owner.cookie.as_str());
        let site = |site| [form, cookie, ("sec-fetch-site", site)];
        for (headers, body) in [(site("same-origin"), ""), (site("cross-site"), &token), (site("same-site"), &token)] {
            let answer = client.send(method, &path, &headers, body).await;
            assert_eq!(answer.status, 403, "{path} {headers:?} {body}");
        }
    }
    let expected = before + 1 + LOGGED_READS.len() as u64;
    assert_eq!(client.world.revision().await, expected, "nothing was committed but entries of the audit log");
}
