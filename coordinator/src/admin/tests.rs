//! The admin socket from both sides, on an in-memory store.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use parallax_certs::rotation::AuthorityStore;
use parallax_core::page::access::PagePassword;
use parallax_core::plan::PlanLimits;
use parallax_core::role::Role;
use parallax_core::time::Timestamp;
use parallax_mesh::members::MemberStore;
use parallax_runtime::clock::Clock;
use parallax_service::page_access::AccessTokenKey;
use parallax_service::people::NewPerson;
use parallax_service::{ServiceParts, ServiceSettings, Services};
use parallax_store::Store;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::*;

/// The admin side of a coordinator.
struct AdminFixture {
    folder: TempDir,
    stop: watch::Sender<bool>,
    serving: JoinHandle<()>,
}

impl AdminFixture {
    fn set() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (stop, stopping) = watch::channel(false);
        let listener = socket::bind(folder.path()).unwrap();
        let serving = tokio::spawn(socket::serve(listener, operator(), stopping));
        Self { folder, stop, serving }
    }

    fn data(&self) -> &Path {
        self.folder.path()
    }

    async fn ask(&self, command: AdminCommand) -> Result<Value, CommandError> {
        client::send_command(self.data(), &command).await.unwrap().expect("one runs")
    }

    /// Sends a raw line and returns the reply's text.
    async fn send_raw(&self, line: &[u8]) -> String {
        let mut stream = UnixStream::connect(socket_path(self.data())).await.unwrap();
        // The rest of an overlong line is not read, since the connection may be closed by then.
        let _ = stream.write_all(line).await;
        let _ = stream.shutdown().await;
        let mut reply = String::new();
        let _ = stream.read_to_string(&mut reply).await;
        reply
    }
}

fn operator() -> OperatorCommands {
    let clock = Clock::manual(Timestamp::from_millis(1_790_000_000_000));
    let store = Store::in_memory().unwrap();
    let base_url = "http://127.0.0.1:8080".to_owned();
    let settings = ServiceSettings {
        base_url,
        root_domain: None,
        limits: PlanLimits::default(),
        allow_private: false,
        sends_mail: true,
        access_token_key: AccessTokenKey::new(&[7; 32]),
    };
    // The files of the authority go at once: it is in memory then.
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    parallax_certs::files::ensure_private_folder(&data).unwrap();
    let authorities = AuthorityStore::open(&data, clock.now().as_millis() / 1_000).unwrap();
    let members = MemberStore::new(store.clone(), clock.clone(), authorities);
    OperatorCommands::new(Services::new(ServiceParts::disconnected(store, clock, settings)), members)
}

fn account(email: &str) -> AdminCommand {
    AdminCommand::AccountCreate { email: email.to_owned(), plan: None }
}

#[tokio::test]
async fn an_operator_creates_an_account_a_page_and_a_key_and_revokes_the_key() {
    let fixture = AdminFixture::set();
    let owner = fixture.ask(account("ann@example.com")).await.unwrap();
    assert_eq!(owner["plan"], "pro");
    let page = AdminCommand::PageCreate { account: None, name: "Shop".to_owned(), slug: "shop".to_owned() };
    let page = fixture.ask(page).await.unwrap();
    assert_eq!((&page["account"], &page["url"]), (&owner["id"], &json!("http://127.0.0.1:8080/p/shop")));
    let id = page["id"].as_str().map(str::to_owned);
    let key = AdminCommand::KeyCreate {
        account: Some("ANN@example.com".to_owned()),
        name: "deploys".to_owned(),
        access: "write".to_owned(),
        page: id,
    };
    let key = fixture.ask(key).await.unwrap();
    assert!(key["key"].as_str().is_some_and(|text| text.starts_with("plx_")));
    let list = fixture.ask(AdminCommand::KeyList { account: None }).await.unwrap();
    assert_eq!(list[0]["id"], key["id"]);
    assert!(!list.to_string().contains("plx_"), "a key is shown once");
    let revoke = AdminCommand::KeyRevoke { key: key["id"].as_str().unwrap().to_owned() };
    fixture.ask(revoke.clone()).await.unwrap();
    assert_eq!(fixture.ask(revoke).await.unwrap_err().message, "there is no such key");
    assert_eq!(fixture.ask(AdminCommand::KeyList { account: None }).await.unwrap(), json!([]));
}

#[tokio::test]
async fn an_account_gets_a_set_up_link_and_a_person_the_rights_of_an_operator() {
    let fixture = AdminFixture::set();
    fixture.ask(account("ann@example.com")).await.unwrap();
    let link = |account: Option<&str>| AdminCommand::AccountLink { account: account.map(str::to_owned) };
    let made = fixture.ask(link(Some("ann@example.com"))).await.unwrap();
    assert!(made["setUpUrl"].as_str().is_some_and(|url| url.starts_with("http://127.0.0.1:8080/setup/")), "{made}");
    assert_ne!(fixture.ask(link(None)).await.unwrap()["setUpUrl"], made["setUpUrl"], "each link is new");
    assert_eq!(fixture.ask(link(Some("eve@example.com"))).await.unwrap_err().code, "not_found");
    let operator = AdminCommand::AccountOperator { email: "ann@example.com".to_owned(), is_operator: true };
    let fault = fixture.ask(operator).await.unwrap_err();
    let expected = "nobody signs in with this address; `parallax account link` prints a link by which the owner chooses \
                    a password";
    assert_eq!((fault.code.as_str(), fault.message.as_str()), ("not_found", expected));
}

#[tokio::test]
async fn a_lost_second_factor_is_removed_and_its_person_signed_out() {
    let operator = operator();
    let people = &operator.service.people;
    let account = operator.service.accounts.create("owner@example.com", None).await.unwrap();
    let email = "ann@example.com".to_owned();
    let ann = NewPerson { email: email.clone(), name: String::new(), role: Role::Viewer, password: None };
    let ann = people.add_as_operator(account.id, &ann).await.unwrap();
    let first = people.test_session(account.id, ann.id).await;
    let (session, _) = people.test_factor(&people.authenticate(&first.token).unwrap().unwrap()).await;
    let remove = AdminCommand::AccountFactorOff { email };
    let removed = operator.run(&remove).await.unwrap();
    let expected = json!({ "id": ann.id.to_string(), "email": "ann@example.com", "secondFactor": false });
    assert_eq!(removed, expected);
    assert!(people.authenticate(&session.token).unwrap().is_none(), "signed out");
    let again = operator.run(&remove).await.unwrap_err();
    assert!(again.code == "invalid" && again.message.contains("without a second factor"), "{again:?}");
    let nobody = AdminCommand::AccountFactorOff { email: "bob@example.com".to_owned() };
    let fault = operator.run(&nobody).await.unwrap_err();
    assert_eq!((fault.code.as_str(), fault.message.as_str()), ("not_found", NOBODY_SIGNS_IN));
}

#[tokio::test]
async fn a_backup_that_the_store_can_not_make_is_an_error_without_a_file() {
    let fixture = AdminFixture::set();
    let mut received = Vec::new();
    let outcome = backup::receive(fixture.data(), &mut received).await.unwrap().expect("one runs");
    assert_eq!(outcome.unwrap_err().message, "the store can't be read or written: a store in memory has no snapshots");
    assert!(received.is_empty());
    let empty_folder = tempfile::tempdir().unwrap();
    assert!(backup::receive(empty_folder.path(), &mut received).await.unwrap().is_none());
}

#[tokio::test]
async fn a_key_for_one_page_belongs_to_its_account() {
    let fixture = AdminFixture::set();
    let mut pages = Vec::new();
    for (email, slug) in [("ann@example.com", "shop"), ("bob@example.com", "news")] {
        fixture.ask(account(email)).await.unwrap();
        let account = Some(email.to_owned());
        let command = AdminCommand::PageCreate { account, name: slug.to_owned(), slug: slug.to_owned() };
        pages.push(fixture.ask(command).await.unwrap());
    }
    let key = |account: Option<&str>, page: &str| AdminCommand::KeyCreate {
        account: account.map(str::to_owned),
        name: "deploys".to_owned(),
        access: "write".to_owned(),
        page: Some(page.to_owned()),
    };
    let news_page = pages[1]["id"].as_str().unwrap();
    assert_eq!(fixture.ask(key(None, news_page)).await.unwrap()["account"], pages[1]["account"]);
    let fault = fixture.ask(key(Some("ann@example.com"), news_page)).await.unwrap_err();
    assert_eq!(fault.message, "there is no such page on this account");
    let fault = fixture.ask(key(None, "pg_0000000000000000000000000a")).await.unwrap_err();
    assert_eq!(fault.message, "there is no such page");
}

#[tokio::test]
async fn an_account_must_be_named_if_there_are_several() {
    let fixture = AdminFixture::set();
    let page = AdminCommand::PageCreate { account: None, name: "Shop".to_owned(), slug: "shop".to_owned() };
    let fault = fixture.ask(page.clone()).await.unwrap_err();
    assert_eq!(fault.message, "there is no account yet; create one with `parallax account create`");
    for email in ["ann@example.com", "bob@example.com"] {
        fixture.ask(account(email)).await.unwrap();
    }
    assert_eq!(fixture.ask(page).await.unwrap_err().message, "account is required because there are several");
    let plan =
        |account: &str, plan: &str| AdminCommand::AccountPlan { account: account.to_owned(), plan: plan.to_owned() };
    assert_eq!(fixture.ask(plan("bob@example.com", "hobby")).await.unwrap()["plan"], "hobby");
    let fault = fixture.ask(plan("eve@example.com", "hobby")).await.unwrap_err();
    assert_eq!((fault.code.as_str(), fault.message.contains("eve@example.com")), ("not_found", true));
    assert!(fixture.ask(plan("bob@example.com", "gold")).await.unwrap_err().message.starts_with("plan "));
}

#[tokio::test]
async fn an_unused_invitation_is_listed_without_its_token() {
    let fixture = AdminFixture::set();
    let invite = |region: &str| AdminCommand::AgentInvite {
        name: "fra1".to_owned(),
        region: region.to_owned(),
        network: "AS64500".to_owned(),
        valid_seconds: None,
    };
    let invitation = fixture.ask(invite("europe")).await.unwrap();
    let token = invitation["token"].as_str().unwrap();
    let list = fixture.ask(AdminCommand::AgentList).await.unwrap();
    assert_eq!((&list[0]["name"], &list[0]["status"]), (&json!("fra1"), &json!("invited")));
    assert!(!list.to_string().contains(token));
    assert!(fixture.ask(invite("mars")).await.unwrap_err().message.starts_with("region must be one of"));
    let revoke = AdminCommand::AgentRevoke { agent: "fra1".to_owned() };
    assert_eq!(fixture.ask(revoke).await.unwrap_err().code, "not_found");
}

#[tokio::test]
async fn an_invalid_command_is_refused_with_a_reason() {
    let fixture = AdminFixture::set();
    for (line, fault) in [
        (&b"hello\n"[..], "not a valid command"),
        (b"{\"command\": \"agent-list\"}", "one line"),
        (b"{\"command\": \"sell\"}\n", "unknown variant"),
        (b"{\"command\": \"agent-revoke\", \"agent\": \"a\", \"why\": 1}\n", "unknown field"),
        (b"", "one line"),
    ] {
        let reply = fixture.send_raw(line).await;
        assert!(reply.contains(fault) && reply.ends_with('\n'), "{fault}: {reply}");
    }
    let too_long = vec![b'x'; usize::try_from(MAX_COMMAND).unwrap() + 10];
    let reply = fixture.send_raw(&too_long).await;
    assert!(reply.is_empty() || reply.contains("one line"), "{reply}");
    assert_eq!(fixture.ask(AdminCommand::AccountList).await.unwrap(), json!([]), "the socket still serves");
}

#[tokio::test]
async fn the_socket_has_owner_permissions_and_is_removed_at_the_end() {
    let fixture = AdminFixture::set();
    let path = socket_path(fixture.data());
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    fixture.stop.send_replace(true);
    fixture.serving.await.unwrap();
    assert!(!path.exists());
    assert!(client::send_command(fixture.folder.path(), &AdminCommand::AccountList).await.unwrap().is_none());
}

#[tokio::test]
async fn the_socket_of_a_killed_coordinator_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    // Bound and closed without removing its file, as after a kill.
    drop(std::os::unix::net::UnixListener::bind(socket_path(folder.path())).unwrap());
    assert!(client::send_command(folder.path(), &AdminCommand::AccountList).await.unwrap().is_none(), "nobody listens");
    let (_stop, stopping) = watch::channel(false);
    let listener = socket::bind(folder.path()).unwrap();
    let serving = tokio::spawn(socket::serve(listener, operator(), stopping));
    let reply = client::send_command(folder.path(), &AdminCommand::AccountList).await.unwrap();
    assert_eq!(reply, Some(Ok(json!([]))));
    serving.abort();
}

#[tokio::test]
async fn an_operator_sets_and_clears_the_fields_of_a_page() {
    let fixture = AdminFixture::set();
    fixture.ask(account("a@example.com")).await.unwrap();
    let page = AdminCommand::PageCreate { account: None, name: "Shop".to_owned(), slug: "shop".to_owned() };
    let page = fixture.ask(page).await.unwrap();
    let set = |page: &str, fields: &[(&str, &str)], clear: &[&str], password: Option<&str>| AdminCommand::PageSet {
        page: page.to_owned(),
        set: fields.iter().map(|(field, text)| ((*field).to_owned(), (*text).to_owned())).collect(),
        clear: clear.iter().map(|field| (*field).to_owned()).collect(),
        password: password.map(|text| PagePassword::new(text.to_owned())),
    };
    let fields = [
        ("name", "Store"),
        ("private", "true"),
        ("allowedPeople", "Ann@example.com, bob@example.com"),
        ("theme", "dark"),
        ("uptimeTarget", "99.9"),
        ("logo", "data:image/svg+xml;base64,PHN2Zy8+"),
        ("customDomain", "status.shop.example"),
    ];
    let command = set("shop", &fields, &[], Some("sesame"));
    assert!(!format!("{command:?}").contains("sesame"));
    let view = fixture.ask(command).await.unwrap();
    assert_eq!((&view["id"], &view["name"], &view["theme"]), (&page["id"], &json!("Store"), &json!("dark")));
    assert_eq!((&view["private"], &view["passwordProtected"]), (&json!(true), &json!(true)));
    assert_eq!(view["allowedPeople"], json!(["ann@example.com", "bob@example.com"]));
    assert_eq!(view["domainVerification"]["host"], "status.shop.example");
    assert!(view["logo"].as_str().unwrap().starts_with("http://127.0.0.1:8080/p/shop/logo/"));
    let id = page["id"].as_str().unwrap();
    let cleared = set(id, &[], &["password", "logo", "allowedPeople", "customDomain"], None);
    let view = fixture.ask(cleared).await.unwrap();
    assert_eq!((&view["passwordProtected"], &view["logo"]), (&json!(false), &Value::Null));
    assert_eq!((&view["allowedPeople"], &view["domainVerification"]), (&json!([]), &Value::Null));
    let invalid = [("theme", "blue"), ("private", "maybe"), ("color", "red")];
    let fault = fixture.ask(set("shop", &invalid, &["theme"], None)).await.unwrap_err();
    assert!(
        fault.message.contains("color is not a field of a page") && fault.message.contains("theme must be set or"),
        "{fault}"
    );
    let fault = fixture.ask(set("shop", &invalid[..2], &[], None)).await.unwrap_err();
    assert!(
        fault.message.contains("theme must be one of") && fault.message.contains("private must be true"),
        "{fault}"
    );
    assert_eq!(fixture.ask(set("none", &[], &[], None)).await.unwrap_err().code, "not_found");
}
