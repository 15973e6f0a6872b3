//! Custom domains: which page they belong to, whatever a name server answers.

use std::sync::Mutex as StdMutex;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parallax_core::audit::AuditActor;
use parallax_core::page::domain::{DomainClaim, ReservedHostname};
use parallax_core::page::domain_verification::{AUTOMATIC_FOR, LookupFailure};
use parallax_core::time::DAY;
use parallax_store::Op;

use super::*;
use crate::hosts::HostOwner;
use crate::hosts::domains::{ReleasedHostname, TxtLookup};

const HOST: &str = "status.shop.example";

/// A fake name server with a fixed answer that records its queries.
#[derive(Debug)]
struct FakeTxtLookup {
    answer: StdMutex<std::result::Result<Vec<String>, LookupFailure>>,
    lookups: StdMutex<Vec<String>>,
    /// Stored during the look-up.
    meanwhile: StdMutex<Option<(Arc<Services>, Page)>>,
}

impl TxtLookup for FakeTxtLookup {
    fn texts<'a>(&'a self, name: &'a str) -> BoxFuture<'a, std::result::Result<Vec<String>, LookupFailure>> {
        async move {
            self.lookups.lock().unwrap().push(name.to_owned());
            let meanwhile = self.meanwhile.lock().unwrap().take();
            if let Some((service, page)) = meanwhile {
                let mut batch = Batch::new();
                batch.write(page);
                service.context.store().commit(batch).await.unwrap();
            }
            self.answer.lock().unwrap().clone()
        }
        .boxed()
    }
}

async fn world_with_claim() -> (World, Arc<FakeTxtLookup>, Page) {
    let world = world().await;
    let lookup = Arc::new(FakeTxtLookup {
        answer: StdMutex::new(Err(LookupFailure::NoRecord)),
        lookups: StdMutex::default(),
        meanwhile: StdMutex::default(),
    });
    world.name_server.set(Arc::clone(&lookup) as Arc<dyn TxtLookup>);
    let page = with_claim(&world.shop, "t0ken", world.service.now());
    put(&world, page.clone()).await;
    (world, lookup, page)
}

fn with_claim(page: &Page, token: &str, now: Timestamp) -> Page {
    let claim = DomainClaim::new(HOST.to_owned(), token.to_owned(), now);
    Page { domain_claim: Some(claim), ..page.clone() }
}

async fn put(world: &World, op: impl Into<Op>) {
    let mut batch = Batch::new();
    batch.write(op);
    world.service.context.store().commit(batch).await.unwrap();
}

fn value(page: &Page) -> String {
    page.domain_claim.as_ref().unwrap().record_value()
}

fn domain_and_problem(world: &World, page: &Page) -> (Option<String>, Option<String>) {
    let page = world.service.context.store().reader().page(page.id).unwrap().unwrap().value;
    (page.custom_domain, page.domain_claim.and_then(|claim| claim.problem))
}

fn owner_of_host(world: &World) -> HostOwner {
    world.service.hosts.owner(HOST).unwrap()
}

#[tokio::test]
async fn a_domain_belongs_to_a_page_once_its_record_exists() {
    let (world, lookup, page) = world_with_claim().await;
    assert_eq!(world.service.domains.due().await.unwrap(), [page.id]);
    world.service.domains.verify(page.id).await.unwrap();
    assert_eq!(lookup.lookups.lock().unwrap()[..], ["_parallax-challenge.status.shop.example".to_owned()]);
    let (domain, problem) = domain_and_problem(&world, &page);
    assert!(domain.is_none() && problem.unwrap().starts_with("there is no TXT record"));
    assert_eq!(world.service.domains.due().await.unwrap(), []);
    for answer in
        [Ok(vec![value(&page) + "x"]), Ok(Vec::new()), Err(LookupFailure::NoResponse), Err(LookupFailure::Internal)]
    {
        *lookup.answer.lock().unwrap() = answer;
        world.service.domains.verify(page.id).await.unwrap();
        assert!(!world.service.hosts.is_served(HOST).unwrap());
        assert_eq!(owner_of_host(&world), HostOwner::Unknown);
        assert!(!world.service.hosts.served_names().await.unwrap().contains(&HOST.to_owned()));
    }
    let before = *world.service.watch_events().borrow();
    *lookup.answer.lock().unwrap() = Ok(vec!["v=spf1 -all".to_owned(), value(&page)]);
    world.service.domains.verify(page.id).await.unwrap();
    assert_eq!(domain_and_problem(&world, &page), (Some(HOST.to_owned()), None));
    assert_eq!(owner_of_host(&world), HostOwner::Page("shop".to_owned()));
    assert!(
        world.service.hosts.is_served(HOST).unwrap()
            && world.service.hosts.served_names().await.unwrap().contains(&HOST.to_owned())
    );
    assert!(*world.service.watch_events().borrow() > before, "it is in the journal");
    assert_eq!(world.last_actor(), AuditActor::Service);
}

#[tokio::test]
async fn a_domain_of_another_page_can_not_be_claimed() {
    let (world, lookup, page) = world_with_claim().await;
    *lookup.answer.lock().unwrap() = Ok(vec![value(&page)]);
    put(&world, Page { custom_domain: Some(HOST.to_owned()), ..world.blog.clone() }).await;
    world.service.domains.verify(page.id).await.unwrap();
    assert_eq!(domain_and_problem(&world, &page).1.unwrap(), "status.shop.example is another page's domain");
    put(&world, world.blog.clone()).await;
    let until = world.service.now() + 30 * DAY;
    put(&world, Op::PutReservedHostname(HOST.to_owned(), ReservedHostname { account: world.foreign.account, until }))
        .await;
    world.service.domains.verify(page.id).await.unwrap();
    assert!(domain_and_problem(&world, &page).1.unwrap().contains("another account's domain recently"));
    world.clock.set(until);
    world.service.domains.verify(page.id).await.unwrap();
    assert_eq!(domain_and_problem(&world, &page).0.as_deref(), Some(HOST));
}

#[tokio::test]
async fn a_claim_that_changed_during_its_lookup_is_not_verified() {
    let (world, lookup, page) = world_with_claim().await;
    *lookup.answer.lock().unwrap() = Ok(vec![value(&page)]);
    let other = with_claim(&page, "another", world.service.now());
    *lookup.meanwhile.lock().unwrap() = Some((world.service.clone(), other));
    world.service.domains.verify(page.id).await.unwrap();
    assert_eq!(domain_and_problem(&world, &page), (None, None));
}

#[tokio::test]
async fn a_page_that_changes_its_domain_releases_the_old_one() {
    let (world, lookup, page) = world_with_claim().await;
    let before = "old.shop.example".to_owned();
    put(&world, Page { custom_domain: Some(before.clone()), ..page.clone() }).await;
    *lookup.answer.lock().unwrap() = Ok(vec![value(&page)]);
    world.service.domains.verify(page.id).await.unwrap();
    let reservation = world.service.context.store().reader().reserved_hostname(&before).unwrap().unwrap();
    assert_eq!((reservation.account, reservation.until), (page.account, world.service.now() + 30 * DAY));
    assert!(!world.service.hosts.is_served(&before).unwrap());
}

#[tokio::test]
async fn a_requested_lookup_runs_at_once_but_is_rate_limited() {
    let (world, lookup, page) = world_with_claim().await;
    let caller = world.caller(KeyAccess::Write).await;
    let reader = world.caller(KeyAccess::Read).await;
    assert_eq!(world.service.domains.check(&reader, page.id).await.unwrap_err(), ServiceError::ReadOnly);
    let none = world.service.domains.check(&caller, world.blog.id).await.unwrap_err();
    assert!(matches!(none, ServiceError::Invalid(_)), "{none:?}");
    let checked = world.service.domains.check(&caller, page.id).await.unwrap();
    assert!(checked.domain_claim.unwrap().problem.is_some());
    let repeated = world.service.domains.check(&caller, page.id).await.unwrap_err();
    assert_eq!(repeated, ServiceError::DomainCheckTooSoon { seconds: 10 });
    // On request it is checked even after the automatic look-ups have stopped.
    world.clock.set(world.service.now() + AUTOMATIC_FOR);
    *lookup.answer.lock().unwrap() = Ok(vec![value(&page)]);
    let checked = world.service.domains.check(&caller, page.id).await.unwrap();
    assert_eq!(checked.custom_domain.as_deref(), Some(HOST));
}

#[tokio::test]
async fn the_operator_releases_a_hostname_for_another_account() {
    let (world, lookup, page) = world_with_claim().await;
    let before = Page { custom_domain: Some(HOST.to_owned()), ..world.blog.clone() };
    put(&world, before.clone()).await;
    let released = world.service.domains.release("Status.Shop.example.").await.unwrap();
    let (host, account) = (HOST.to_owned(), before.account);
    assert_eq!(released, ReleasedHostname { host, page: Some(before.id), account, company: None });
    assert_eq!((owner_of_host(&world), domain_and_problem(&world, &before).0), (HostOwner::Unknown, None));
    *lookup.answer.lock().unwrap() = Ok(vec![value(&page)]);
    world.service.domains.verify(page.id).await.unwrap();
    assert_eq!(domain_and_problem(&world, &page).0.as_deref(), Some(HOST), "once it is proven");
    // One that is only reserved for the account that had it recently.
    let released_host = "old.shop.example".to_owned();
    let stored = ReservedHostname { account: world.foreign.account, until: world.service.now() + DAY };
    put(&world, Op::PutReservedHostname(released_host.clone(), stored)).await;
    let released = world.service.domains.release(&released_host).await.unwrap();
    let (host, account) = (released_host.clone(), stored.account);
    assert_eq!(released, ReleasedHostname { host, page: None, account, company: None });
    let reservation = world.service.context.store().reader().reserved_hostname(&released_host).unwrap().unwrap();
    assert!(!reservation.is_reserved_from(page.account, world.service.now()));
    for none in [released_host.as_str(), "none.example", "", "a b"] {
        assert_eq!(world.service.domains.release(none).await.unwrap_err(), ServiceError::NotFound, "{none}");
    }
}

#[tokio::test]
async fn claims_are_reread_after_an_edit_and_after_a_lookup() {
    let (world, _, page) = world_with_claim().await;
    let due = async || world.service.domains.due().await.unwrap();
    assert_eq!(due().await, [page.id]);
    let other = with_claim(&world.blog, "t", world.service.now());
    let mut batch = Batch::new();
    batch.write(other.clone());
    world.service.context.store().commit(batch).await.unwrap();
    assert_eq!(due().await, [page.id], "no event, so they are not read again");
    world.put_page(other.clone()).await;
    assert_eq!(due().await.len(), 2);
    world.service.domains.verify(page.id).await.unwrap();
    assert_eq!(due().await, [other.id], "the other was just looked up");
}
