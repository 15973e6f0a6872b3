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
struct AcmeBench {
    context: AcmeContext,
    names: Arc<Mutex<Option<Vec<String>>>>,
    changes: watch::Sender<u64>,
    list_calls: Arc<AtomicUsize>,
    folder: TempDir,
}

impl AcmeBench {
    fn new(names: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (changes, changes_receiver) = watch::channel(0);
        let names = Arc::new(Mutex::new(Some(names.iter().map(|&name| name.to_owned()).collect())));
        let list_calls = Arc::new(AtomicUsize::new(0));
        let (names_to_list, calls) = (Arc::clone(&names), Arc::clone(&list_calls));
        let list: HostLister = Arc::new(move || {
            calls.fetch_add(1, Ordering::Relaxed);
            let names = names_to_list.lock().unwrap().clone();
            async { names }.boxed()
        });
        let resolver = DnsResolver::with_servers(&["127.0.0.1:9".parse().unwrap()]).unwrap();
        let context = AcmeContext {
            settings: AcmeSettings {
                folder: folder.path().join("tls"),
                directory: "https://127.0.0.1:9/dir".to_owned(),
                contact: None,
                roots: None,
            },
            hosts: CertificateHosts { list, changes: changes_receiver, base_host: Some("status.example".to_owned()) },
            clock: Clock::manual(END - 20 * DAY),
            resolver: CertificateResolver::new(Some("status.example".to_owned())),
            challenges: AcmeChallenges::default(),
            guard: DialGuard::new(resolver, DialPolicy::default()),
            status: AcmeStatus::default(),
        };
        Self { context, names, changes, list_calls, folder }
    }

    /// Saves a certificate for a host in the folder.
    fn save_certificate(&self, name: &str, until: i32) {
        let (certificate, key) = pem(&[name], until);
        let folder = CertificateStore::open(&self.folder.path().join("tls")).unwrap();
        folder.save_certificate(name, &format!("{key}{certificate}")).unwrap();
    }

    fn set_hosts(&self, names: Option<&[&str]>) {
        let names = names.map(|names| names.iter().map(|&name| name.to_owned()).collect());
        *self.names.lock().unwrap() = names;
        self.changes.send_modify(|number| *number += 1);
    }

    fn is_served(&self, name: &str) -> bool {
        self.context.resolver.issued(name).is_some()
    }
}

#[tokio::test]
async fn certificates_that_are_not_renewed_are_reported_to_operator_and_owners() {
    let bench = AcmeBench::new(&["status.example", "shop.example"]);
    bench.save_certificate("status.example", 2021);
    bench.save_certificate("shop.example", 2021);
    let mut manager = AcmeManager::start(bench.context.clone()).await.unwrap();
    let status = &bench.context.status;
    assert!(bench.is_served("status.example") && bench.is_served("shop.example"));
    let expected_expiring =
        |first: &str, count| Some(ExpiringCertificates { first_host: first.to_owned(), count, expires_at: END });
    for (remaining, expected) in
        [(20 * DAY, None), (14 * DAY, None), (14 * DAY - 1, expected_expiring("shop.example", 2))]
    {
        bench.context.clock.set(END - remaining);
        manager.refresh().await;
        assert_eq!(status.expiring(), expected, "{remaining}");
    }
    manager.record_failure(
        "shop.example",
        &OrderError::points_elsewhere("it leads elsewhere; point it to status.example"),
    );
    manager.record_failure("status.example", &OrderError::unreachable("no network"));
    manager.refresh().await;
    assert_eq!(status.expiring(), expected_expiring("status.example", 1), "where a host points to is up to its owner");
    assert_eq!(status.problem("shop.example").as_deref(), Some("it leads elsewhere; point it to status.example"));
    assert_eq!(status.problem("status.example"), None, "the owner can't fix it");
    manager.record_failure("shop.example", &OrderError::rejected("429 at acme.example/account/7"));
    let problem = status.problem("shop.example").unwrap();
    assert!(problem.contains("refused it") && !problem.contains("account"), "{problem}");
    let (certificate, key) = pem(&["shop.example"], 2030);
    manager.install("shop.example", CertificateAndKey::read(&certificate, &key).unwrap());
    assert_eq!(status.problem("shop.example"), None, "it is renewed");
    manager.record_failure("nobody.example", &OrderError::points_elsewhere("gone meanwhile"));
    assert_eq!(status.problem("nobody.example"), None);
}

#[tokio::test]
async fn hosts_are_listed_once_and_again_after_a_change() {
    let bench = AcmeBench::new(&["a.example", "b.example"]);
    for name in ["a.example", "b.example", "c.example", "old.example"] {
        bench.save_certificate(name, 2030);
    }
    let mut manager = AcmeManager::start(bench.context.clone()).await.unwrap();
    let list_calls = || bench.list_calls.load(Ordering::Relaxed);
    for _ in 0..3 {
        manager.refresh().await;
    }
    assert_eq!(list_calls(), 1);
    assert!(bench.is_served("a.example") && !bench.is_served("c.example"));
    assert!(manager.store.certificate("old.example").is_none(), "an unused certificate is removed");
    // If the hosts can't be listed, they are as soon as they can.
    bench.save_certificate("c.example", 2030);
    bench.set_hosts(None);
    manager.refresh().await;
    *bench.names.lock().unwrap() = Some(vec!["a.example".to_owned(), "c.example".to_owned()]);
    manager.refresh().await;
    manager.refresh().await;
    assert_eq!(list_calls(), 3);
    assert!(bench.is_served("c.example") && !bench.is_served("b.example"));
    assert!(manager.store.certificate("b.example").is_none());
    // A host covered by the operator's certificate needs no other.
    let (certificate, key) = pem(&["a.example", "c.example"], 2030);
    bench.context.resolver.set_operator(CertificateAndKey::read(&certificate, &key).unwrap());
    manager.refresh().await;
    assert!(!bench.is_served("a.example") && list_calls() == 3);
}

#[tokio::test]
async fn a_restarted_manager_orders_no_existing_certificate_and_removes_none() {
    let bench = AcmeBench::new(&["a.example"]);
    bench.save_certificate("a.example", 2030);
    let (certificate, key) = pem(&["other.example"], 2030);
    bench.context.resolver.set_operator(CertificateAndKey::read(&certificate, &key).unwrap());
    // At the start the hosts can't be listed.
    bench.set_hosts(None);
    let mut manager = AcmeManager::start(bench.context.clone()).await.unwrap();
    assert!(manager.store.certificate("a.example").is_some());
    bench.set_hosts(Some(&["a.example"]));
    manager.refresh().await;
    assert!(bench.is_served("a.example"));
    manager.record_failure("a.example", &OrderError::points_elsewhere("it leads elsewhere"));
    drop(manager);
    let mut restarted = AcmeManager::start(bench.context.clone()).await.unwrap();
    assert_eq!(restarted.plan.next_due(bench.context.clock.now()), None);
    assert_eq!(bench.context.status.problem("a.example"), None);
}

#[tokio::test]
async fn a_restarted_manager_waits_until_its_folder_is_usable() {
    let bench = AcmeBench::new(&["status.example"]);
    let folder = &bench.context.settings.folder;
    std::fs::write(folder, "no folder").unwrap();
    assert!(AcmeManager::start(bench.context.clone()).await.is_err());
    let mut restarted = Box::pin(AcmeManager::restart(bench.context.clone(), Duration::from_millis(1)));
    assert!((&mut restarted).now_or_never().is_none());
    std::fs::remove_file(folder).unwrap();
    bench.save_certificate("status.example", 2090);
    restarted.await;
    assert!(bench.is_served("status.example"));
}
