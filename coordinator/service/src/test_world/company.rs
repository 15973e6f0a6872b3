//! A company with its provider, for tests: the owner's account, whose people have addresses at shop.example.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parallax_core::account::Account;
use parallax_core::page::domain_verification::LookupFailure;
use parallax_core::role::Role;

use super::fake_provider::{CLIENT_ID, CLIENT_SECRET, FakeProvider};
use super::{World, world};
use crate::hosts::domains::TxtLookup;
use crate::people::{
    BrowserInfo, CompanyAnswer, CompanyOptions, CompanyRefusal, CompanySignInStart, CurrentSession, ProviderEdit,
    SignInStep,
};

/// Identifier of the browser of every test.
pub const BROWSER: [u8; 16] = [7; 16];

/// A world whose owner's account has company sign-in.
#[derive(Debug)]
pub struct CompanyWorld {
    pub world: World,
    pub provider: FakeProvider,
    /// An owner who signed in by their own means.
    pub owner: CurrentSession,
}

/// Answers each look-up with these texts.
#[derive(Debug)]
struct Texts(Vec<String>);

impl TxtLookup for Texts {
    fn texts<'a>(&'a self, _name: &'a str) -> BoxFuture<'a, std::result::Result<Vec<String>, LookupFailure>> {
        std::future::ready(Ok(self.0.clone())).boxed()
    }
}

impl World {
    /// Answers each look-up of TXT records with these texts.
    pub fn answer_texts(&self, texts: Vec<String>) {
        self.name_server.set(Arc::new(Texts(texts)));
    }
}

impl CompanyWorld {
    /// The provider is set, and shop.example is proved.
    pub async fn new() -> Self {
        let world = world().await;
        let provider = FakeProvider::start(&world.clock).await;
        let owner = world.signed_in(Role::Owner).await;
        let owner = world.service.people.authenticate(&owner.token).unwrap().unwrap();
        let company = Self { world, provider, owner };
        company.set_provider(&company.owner, &company.provider).await;
        company.prove(&company.owner, "shop.example").await;
        company
    }

    /// The account that owns nothing of the owner's.
    pub async fn other_account(&self) -> Account {
        let accounts = self.world.service.accounts.list().await.unwrap();
        accounts.into_iter().find(|account| account.id == self.world.foreign.account).unwrap()
    }

    /// Sets an account's provider.
    pub async fn set_provider(&self, owner: &CurrentSession, provider: &FakeProvider) {
        let edit = ProviderEdit {
            issuer: provider.issuer.clone(),
            client_id: CLIENT_ID.to_owned(),
            client_secret: CLIENT_SECRET.to_owned(),
        };
        self.world.service.people.set_company_provider(owner, &edit).await.unwrap();
    }

    /// Adds an email domain to an account, with its TXT record.
    pub async fn prove(&self, owner: &CurrentSession, domain: &str) {
        let people = &self.world.service.people;
        people.add_company_domain(owner, domain).await.unwrap();
        let domains = people.company_settings(owner).unwrap().domains;
        let claim = domains.into_iter().find(|it| it.claim.host == domain).unwrap().claim;
        self.world.answer_texts(vec![claim.record_value()]);
        people.check_company_domain(owner, domain).await.unwrap();
    }

    pub async fn set_options(&self, is_required: bool, covers_second_factor: bool) {
        let people = &self.world.service.people;
        assert_eq!(people.test_company_provider(&self.owner).await.unwrap(), None);
        let options = CompanyOptions { is_required, covers_second_factor };
        people.set_company_options(&self.owner, options).await.unwrap();
    }

    /// Begins a sign-in in the owner's account, and returns the address at the provider.
    pub async fn begin(&self) -> Result<String, CompanyRefusal> {
        self.begin_as(false).await
    }

    /// The same, for a person who proves again that it is them.
    pub async fn begin_confirmation(&self) -> Result<String, CompanyRefusal> {
        self.begin_as(true).await
    }

    async fn begin_as(&self, is_confirmation: bool) -> Result<String, CompanyRefusal> {
        let start = CompanySignInStart {
            browser: BROWSER,
            network: None,
            email: String::new(),
            next: "/app/search".to_owned(),
            is_kept: true,
            is_confirmation,
        };
        self.world.service.people.begin_company_sign_in(self.world.owner.id, &start).await.unwrap()
    }

    /// Brings the provider's answer back.
    pub async fn finish(&self, answer: &CompanyAnswer) -> Result<SignInStep, CompanyRefusal> {
        let browser = BrowserInfo::new("203.0.113.7".parse().ok(), "", None);
        let people = &self.world.service.people;
        let by = (Some(&BROWSER), &browser);
        let finished = people.finish_company_sign_in(self.world.owner.id, answer, by).await.unwrap();
        finished.map(|(step, next)| {
            assert_eq!(next, "/app/search");
            step
        })
    }

    /// Signs the provider's person in, from begin to end.
    pub async fn sign_in(&self) -> Result<SignInStep, CompanyRefusal> {
        let answer = self.provider.sign_in(&self.begin().await?);
        self.finish(&answer).await
    }

    /// Signs the provider's person in, who needs nothing else.
    pub async fn signed_in(&self) -> CurrentSession {
        let new = self.sign_in().await.unwrap().session().unwrap();
        self.world.service.people.authenticate(&new.token).unwrap().unwrap()
    }
}
