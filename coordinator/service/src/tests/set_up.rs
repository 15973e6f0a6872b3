//! Set-up of an account that nobody uses yet: owner, page and monitor are made in one step, or nothing is.

use parallax_core::id::AccountId;
use parallax_core::page::Page;
use parallax_core::role::Role;
use parallax_store::Batch;

use crate::dashboard::SetUpStep;
use crate::people::{BrowserInfo, FirstSite, NewPerson, PLACEHOLDER_PAGE, SetUpAccount, SetUpDetails};
use crate::test_world::{World, world};
use crate::{Caller, ServiceError};

fn details(url: &str, page_name: &str, slug: &str) -> SetUpDetails {
    SetUpDetails {
        email: "ann@example.com".to_owned(),
        password: "correct horse".to_owned(),
        name: String::new(),
        site: FirstSite { url: url.to_owned(), page_name: page_name.to_owned(), slug: slug.to_owned() },
    }
}

/// A new account, as the program's first start makes it, and the token of its set-up link.
async fn new_account(world: &World, has_placeholder: bool) -> (AccountId, String) {
    let account = world.service.accounts.create("owner@example.invalid", None).await.unwrap().id;
    if has_placeholder {
        let (name, slug) = PLACEHOLDER_PAGE;
        world.service.pages.create_as_operator(account, name, slug).await.unwrap();
    }
    (account, link(world, account).await)
}

async fn link(world: &World, account: AccountId) -> String {
    let link = world.service.people.create_set_up_link(account, true).await.unwrap();
    link.split_once("/setup/").unwrap().1.to_owned()
}

async fn set_up(world: &World, token: &str, details: &SetUpDetails) -> Result<Caller, ServiceError> {
    let people = &world.service.people;
    let session = people.set_up(token, details, &BrowserInfo::default()).await?.session().unwrap();
    Ok(people.authenticate(&session.token).unwrap().unwrap().caller())
}

#[tokio::test]
async fn the_first_owner_gets_a_page_and_a_monitor_in_one_step() {
    for has_placeholder in [false, true] {
        let world = world().await;
        let (account, token) = new_account(&world, has_placeholder).await;
        let asked = world.service.people.set_up_account(&token).unwrap();
        assert_eq!(asked, Some(SetUpAccount { email: None, asks_for_site: true, id: account }));
        let caller = set_up(&world, &token, &details("www.northwind.example/shop", "", "")).await.unwrap();
        let pages = world.service.pages.list_of_account(account).await.unwrap();
        let [page] = pages.as_slice() else { panic!("{pages:?}") };
        assert_eq!((page.name.as_str(), page.slug.as_str()), ("Northwind", "northwind"), "{has_placeholder}");
        let monitors = world.service.monitors.list(&caller, page.id).await.unwrap();
        let targets: Vec<String> = monitors.iter().map(|it| it.monitor.check.target()).collect();
        assert_eq!(targets, ["https://www.northwind.example/shop"]);
        let destinations = world.service.destinations.list(&caller, page.id).await.unwrap();
        let mailboxes: Vec<_> = destinations.iter().map(|it| it.mailbox()).collect();
        assert_eq!(mailboxes, [Some("ann@example.com")]);
        // A later link is for a new password alone.
        let later = link(&world, account).await;
        let asked = world.service.people.set_up_account(&later).unwrap().unwrap();
        assert!(!asked.asks_for_site);
        set_up(&world, &later, &details("", "", "")).await.unwrap();
        assert_eq!(world.service.monitors.list(&caller, page.id).await.unwrap().len(), 1);
    }
}

#[tokio::test]
async fn a_refusal_leaves_nothing_behind_and_the_link_works_again() {
    let world = world().await;
    let (account, token) = new_account(&world, false).await;
    for (details, expected) in [
        (details("", "", ""), "url is required"),
        (details("https://a.example", "", "shop"), "slug is taken. shop-status is free"),
        (SetUpDetails { password: "short".to_owned(), ..details("https://a.example", "", "") }, "password must be"),
        (SetUpDetails { email: "owner@example.com".to_owned(), ..details("https://a.example", "", "") }, "email is"),
    ] {
        let refusal = set_up(&world, &token, &details).await.unwrap_err().to_string();
        assert!(refusal.starts_with(expected), "{refusal}");
        assert_eq!(world.service.pages.list_of_account(account).await.unwrap(), []);
        assert!(world.service.people.members(account).await.unwrap().is_empty());
    }
    // A name from the address that is taken gets an addition.
    set_up(&world, &token, &details("https://shop.example", "Shop", "")).await.unwrap();
    assert_eq!(world.service.pages.list_of_account(account).await.unwrap()[0].slug, "shop-status");
}

#[tokio::test]
async fn an_account_in_use_is_not_asked_for_a_site() {
    let world = world().await;
    let asks = async |account: AccountId| {
        let token = link(&world, account).await;
        world.service.people.set_up_account(&token).unwrap().unwrap().asks_for_site
    };
    assert!(!asks(world.owner.id).await, "it has pages");
    let (account, _) = new_account(&world, false).await;
    assert!(asks(account).await);
    world.service.pages.create_as_operator(account, "Mine", "mine").await.unwrap();
    assert!(!asks(account).await, "a page that somebody named");
    let session = world.signed_in(Role::Owner).await;
    assert!(world.service.people.authenticate(&session.token).unwrap().is_some());
}

#[tokio::test]
async fn each_step_after_the_set_up_is_done_by_what_is_stored() {
    let world = world().await;
    let (account, token) = new_account(&world, true).await;
    let caller = set_up(&world, &token, &details("https://northwind.example", "", "")).await.unwrap();
    let dashboard = &world.service.dashboard;
    let steps = async || dashboard.next_steps(&caller).await.unwrap();
    let open = async || -> Vec<SetUpStep> {
        steps().await.unwrap_or_default().into_iter().filter(|(_, done)| !done).map(|(step, _)| step).collect()
    };
    let all = [SetUpStep::SecondNetwork, SetUpStep::TestAlert, SetUpStep::SecondMember, SetUpStep::Domain];
    assert_eq!((steps().await.unwrap().len(), open().await), (5, all.to_vec()));
    let page = world.service.pages.list_of_account(account).await.unwrap().remove(0);
    let mut batch = Batch::new();
    batch.write(Page { custom_domain: Some("status.northwind.example".to_owned()), ..page.clone() });
    world.service.context.store().commit(batch).await.unwrap();
    assert_eq!(open().await, all[..3]);
    let bob =
        NewPerson { email: "bob@example.com".to_owned(), name: String::new(), role: Role::Editor, password: None };
    world.service.people.add_as_operator(account, &bob).await.unwrap();
    assert_eq!(open().await, all[..2]);
    world.receive();
    let destination = world.service.destinations.list(&caller, page.id).await.unwrap().remove(0).id;
    world.service.deliveries.send_test(&caller, page.id, destination).await.unwrap();
    assert_eq!(open().await, all[..1]);
    // What was done stays done, also once it is undone.
    let mut batch = Batch::new();
    batch.write(page.clone());
    world.service.context.store().commit(batch).await.unwrap();
    assert_eq!((steps().await.unwrap().len(), open().await), (5, all[..1].to_vec()));
}

#[tokio::test]
async fn an_owner_dismisses_the_steps_for_all_owners() {
    let world = world().await;
    let dashboard = &world.service.dashboard;
    for (role, is_allowed) in [(Role::Viewer, false), (Role::Editor, false), (Role::Owner, true)] {
        let session = world.signed_in(role).await;
        let caller = world.service.people.authenticate(&session.token).unwrap().unwrap().caller();
        assert_eq!(dashboard.next_steps(&caller).await.unwrap().is_some(), is_allowed, "{role:?}");
        let dismissed = dashboard.dismiss_next_steps(&caller).await;
        assert_eq!(dismissed.is_ok(), is_allowed, "{role:?}: {dismissed:?}");
    }
    let session = world.signed_in(Role::Owner).await;
    let caller = world.service.people.authenticate(&session.token).unwrap().unwrap().caller();
    assert_eq!(dashboard.next_steps(&caller).await.unwrap(), None);
    let key = world.caller(parallax_core::key::KeyAccess::Write).await;
    assert_eq!(dashboard.next_steps(&key).await.unwrap(), None);
    assert!(dashboard.dismiss_next_steps(&key).await.is_err());
}
