//! Company sign-in through the real program, in Chromium, with a real OpenID Connect provider.

use std::net::SocketAddr;
use std::path::PathBuf;

use parallax_core::company_sign_in::{CompanyDomain, CompanySignIn};
use parallax_core::id::AccountId;
use parallax_core::page::domain::DomainClaim;
use parallax_store::disk::DiskOptions;
use parallax_store::{Batch, Store};
use parallax_tests::dashboard_browser::DashboardBrowser;
use parallax_tests::installation::CoordinatorProcess;
use serde_json::json;

use crate::browser_visits::{screenshot_folder, tools, visit};

const OWNER: &str = "owner@example.com";
const PASSWORD: &str = "correct horse battery";

#[tokio::test(flavor = "multi_thread")]
async fn a_newcomer_signs_in_with_the_provider_of_their_company() {
    let Some(tools) = tools("a_newcomer_signs_in_with_the_provider_of_their_company") else { return };
    // The provider is on this host.
    let config = "[deliver]\nallow_private = true\n";
    let mut coordinator = CoordinatorProcess::serve(SocketAddr::from(([127, 0, 0, 1], 0)), config).await;
    coordinator.create_account_of(OWNER, "pro");
    let (account, _) = DashboardBrowser::set_up(&coordinator, OWNER, PASSWORD).await;
    coordinator.process.kill();
    prove_domain(coordinator.data().join("store"), account).await;
    coordinator.restart().await;
    let told = json!({
        "base": coordinator.ready.base_url.trim_end_matches('/'),
        "page": coordinator.ready.base_url,
        "account": account.to_string(),
        "email": OWNER,
        "password": PASSWORD,
        "shots": screenshot_folder(),
        "modules": tools.modules(),
    });
    visit(&tools, "page/company_sign_in.mjs", &told).await;
}

/// Stores a proved email domain, as a look-up of its TXT record would.
async fn prove_domain(folder: PathBuf, account: AccountId) {
    let open = move || Store::on_disk(&folder, DiskOptions::default());
    let store = tokio::task::spawn_blocking(open).await.expect("no panic").expect("the store opens");
    let owner = store.reader().person_by_email(OWNER).expect("a read").expect("the owner is stored").value;
    let now = owner.created_at;
    let claim = DomainClaim::new("shop.example".to_owned(), "token".to_owned(), now);
    let company = CompanySignIn {
        account,
        issuer: "https://id.shop.example".to_owned(),
        client_id: "before".to_owned(),
        client_secret: "before".to_owned(),
        domains: vec![CompanyDomain { claim, proved_at: Some(now) }],
        is_required: false,
        covers_second_factor: false,
        worked_at: None,
    };
    let mut batch = Batch::new();
    batch.write(company);
    store.commit(batch).await.expect("a commit");
    store.close().await;
}
