//! Tests of the ACME manager with its folder, and with an ACME server that can't be reached.

use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::FutureExt;
use parallax_core::time::{DAY, Timestamp};
use parallax_dial::{DialPolicy, DnsResolver};
use tempfile::TempDir;

use super::super::certified_key::tests::pem;
use super::*;

/// Expiry of certificates valid until 2021.
const END: Timestamp = Timestamp::from_millis(1_609_459_200_000);

/// Dependencies of a manager, and handles to change them.
struct World {
    tools: AcmeContext,
    names: Arc<Mutex<Option<Vec<String>>>>,
    changes: watch::Sender<u64>,
    listed: Arc<AtomicUsize>,
    folder: TempDir,
}

impl World {
    fn new(names: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (changes, changed) = watch::channel(0);
        let names = Arc::new(Mutex::new(Some(names.iter().map(|&name| name.to_owned()).collect())));
        let listed = Arc::new(AtomicUsize::new(0));
        let (known, times) = (Arc::clone(&names), Arc::clone(&listed));
        let list: HostLister = Arc::new(move || {
            times.fetch_add(1, Ordering::Relaxed);
            let names = known.lock().unwrap().clone();
            async { names }.boxed()
        });
        let resolver = DnsResolver::with_servers(&["127.0.0.1:9".parse().unwrap()]).unwrap();
        let tools = AcmeContext {
            settings: AcmeSettings {
                folder: folder.path().join("tls"),
                directory: "https://127.0.0.1:9/dir".to_owned(),
                contact: None,
                roots: None,
            },
            hosts: CertificateHosts { list, changes: changed, base_host: Some("status.example".to_owned()) },
            clock: Clock::manual(END - 20 * DAY),
            resolver: CertificateResolver::new(Some("status.example".to_owned())),
            challenges: AcmeChallenges::default(),
            guard: DialGuard::new(resolver, DialPolicy::default()),
            status: AcmeStatus::default(),
        };
        Self { tools, names, changes, listed, folder }
    }

    /// Saves a certificate for a host in the folder.
    fn keep(&self, name: &str, until: i32) {
        let (certificate, key) = pem(&[name], until);
        let folder = CertificateStore::open(&self.folder.path().join("tls")).unwrap();
        folder.save_certificate(name, &format!("{key}{certificate}")).unwrap();
    }

    fn set(&self, names: Option<&[&str]>) {
        let names = names.map(|names| names.iter().map(|&name| name.to_owned()).collect());
        *self.names.lock().unwrap() = names;
        self.changes.send_modify(|number| *number += 1);
    }

    fn is_shown(&self, name: &str) -> bool {
        self.tools.resolver.issued(name).is_some()
    }
}

#[tokio::test]
async fn certificates_that_are_not_renewed_are_told_in_time_and_owners_why() {
    let world = World::new(&["status.example", "shop.example"]);
    world.keep("status.example", 2021);
    world.keep("shop.example", 2021);
    let mut keeper = AcmeManager::start(world.tools.clone()).await.unwrap();
    let told = &world.tools.status;
    assert!(world.is_shown("status.example") && world.is_shown("shop.example"));
    let ending =
        |first: &str, count| Some(ExpiringCertificates { first_host: first.to_owned(), count, expires_at: END });
    for (left, expected) in [(20 * DAY, None), (14 * DAY, None), (14 * DAY - 1, ending("shop.example", 2))] {
        world.tools.clock.set(END - left);
        keeper.refresh().await;
        assert_eq!(told.expiring(), expected, "{left}");
    }
    keeper.record_failure(
        "shop.example",
        &OrderError::points_elsewhere("it leads elsewhere; point it to status.example"),
    );
    keeper.record_failure("status.example", &OrderError::unreachable("no network"));
    keeper.refresh().await;
    assert_eq!(told.expiring(), ending("status.example", 1), "where a host points to is up to its owner");
    assert_eq!(told.problem("shop.example").as_deref(), Some("it leads elsewhere; point it to status.example"));
    assert_eq!(told.problem("status.example"), None, "the owner can't fix it");
    keeper.record_failure("shop.example", &OrderError::rejected("429 at acme.example/account/7"));
    let words = told.problem("shop.example").unwrap();
    assert!(words.contains("refused it") && !words.contains("account"), "{words}");
    let (certificate, key) = pem(&["shop.example"], 2030);
    keeper.install("shop.example", CertificateAndKey::read(&certificate, &key).unwrap());
    assert_eq!(told.problem("shop.example"), None, "it is renewed");
    keeper.record_failure("nobody.example", &OrderError::points_elsewhere("gone meanwhile"));
    assert_eq!(told.problem("nobody.example"), None);
}

#[tokio::test]
async fn names_are_listed_once_and_again_after_a_change() {
    let world = World::new(&["a.example", "b.example"]);
    for name in ["a.example", "b.example", "c.example", "old.example"] {
        world.keep(name, 2030);
    }
    let mut keeper = AcmeManager::start(world.tools.clone()).await.unwrap();
    let listed = || world.listed.load(Ordering::Relaxed);
    for _ in 0..3 {
        keeper.refresh().await;
    }
    assert_eq!(listed(), 1);
    assert!(world.is_shown("a.example") && !world.is_shown("c.example"));
    assert!(keeper.store.certificate("old.example").is_none(), "an unused certificate is removed");
    // If the hosts can't be listed, they are as soon as they can.
    world.keep("c.example", 2030);
    world.set(None);
    keeper.refresh().await;
    *world.names.lock().unwrap() = Some(vec!["a.example".to_owned(), "c.example".to_owned()]);
    keeper.refresh().await;
    keeper.refresh().await;
    assert_eq!(listed(), 3);
    assert!(world.is_shown("c.example") && !world.is_shown("b.example"));
    assert!(keeper.store.certificate("b.example").is_none());
    // A host covered by the operator's certificate needs no other.
    let (certificate, key) = pem(&["a.example", "c.example"], 2030);
    world.tools.resolver.set_operator(CertificateAndKey::read(&certificate, &key).unwrap());
    keeper.refresh().await;
    assert!(!world.is_shown("a.example") && listed() == 3);
}

#[tokio::test]
async fn a_keeper_begun_anew_orders_nothing_that_is_there_and_takes_nothing_for_gone() {
    let world = World::new(&["a.example"]);
    world.keep("a.example", 2030);
    let (certificate, key) = pem(&["other.example"], 2030);
    world.tools.resolver.set_operator(CertificateAndKey::read(&certificate, &key).unwrap());
    // At the start the hosts can't be listed.
    world.set(None);
    let mut keeper = AcmeManager::start(world.tools.clone()).await.unwrap();
    assert!(keeper.store.certificate("a.example").is_some());
    world.set(Some(&["a.example"]));
    keeper.refresh().await;
    assert!(world.is_shown("a.example"));
    keeper.record_failure("a.example", &OrderError::points_elsewhere("it leads elsewhere"));
    drop(keeper);
    let mut renewed = AcmeManager::start(world.tools.clone()).await.unwrap();
    assert_eq!(renewed.plan.next_due(world.tools.clock.now()), None);
    assert_eq!(world.tools.status.problem("a.example"), None);
}

#[tokio::test]
async fn a_folder_that_can_not_be_used_is_waited_for_where_certificates_are_shown_already() {
    let world = World::new(&["status.example"]);
    let folder = &world.tools.settings.folder;
    std::fs::write(folder, "no folder").unwrap();
    assert!(AcmeManager::start(world.tools.clone()).await.is_err());
    let mut renewed = Box::pin(AcmeManager::restart(world.tools.clone(), Duration::from_millis(1)));
    assert!((&mut renewed).now_or_never().is_none());
    std::fs::remove_file(folder).unwrap();
    world.keep("status.example", 2090);
    renewed.await;
    assert!(world.is_shown("status.example"));
}
