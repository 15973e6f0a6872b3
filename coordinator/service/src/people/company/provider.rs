//! A provider's documents, its proof of a person, and the checks of both. `openidconnect` reads and verifies them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, Utc};
use openidconnect::core::{
    CoreAuthPrompt, CoreAuthenticationFlow, CoreClient, CoreClientAuthMethod, CoreIdToken, CoreIdTokenClaims,
    CoreJwsSigningAlgorithm, CoreProviderMetadata, CoreUserInfoClaims,
};
use openidconnect::{
    AuthType, AuthorizationCode, ClaimsVerificationError, ClientId, ClientSecret, CsrfToken, DiscoveryError, IssuerUrl,
    LoginHint, Nonce, OAuth2TokenResponse, PkceCodeChallenge, PkceCodeVerifier, RedirectUrl, RequestTokenError, Scope,
    SignatureVerificationError, TokenResponse,
};
use parallax_core::company_sign_in::{CompanySignIn, MAX_SUBJECT};
use parallax_core::time::{HOUR, MINUTE, SECOND, Timestamp};
use url::Url;

use super::pending::{LEEWAY, PendingCompanySignIn};
use super::provider_client::{ProviderRequestError, ProviderStep};
use super::refusal::CompanyRefusal;

/// Algorithms of signatures that count: none, and none with the client secret as key, is among them.
const ALGORITHMS: [CoreJwsSigningAlgorithm; 9] = [
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha256,
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha384,
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha512,
    CoreJwsSigningAlgorithm::RsaSsaPssSha256,
    CoreJwsSigningAlgorithm::RsaSsaPssSha384,
    CoreJwsSigningAlgorithm::RsaSsaPssSha512,
    CoreJwsSigningAlgorithm::EcdsaP256Sha256,
    CoreJwsSigningAlgorithm::EcdsaP384Sha384,
    CoreJwsSigningAlgorithm::EdDsa,
];
/// Time for which a provider's documents are kept, in milliseconds.
const KEPT_FOR: i64 = HOUR;
/// Time after which they are read again for a key that they don't have, in milliseconds.
const RENEW_AFTER: i64 = MINUTE;
/// Time for which a provider that failed is not asked again, in milliseconds.
const FAILED_FOR: i64 = 30 * SECOND;
/// Providers whose documents are kept, at most: a further one replaces the one that was asked first.
const MAX_PROVIDERS: usize = 64;

/// Documents of providers, by issuer.
#[derive(Debug, Default)]
pub(super) struct ProviderCache(Mutex<BTreeMap<String, Arc<CachedProvider>>>);

/// One provider.
#[derive(Debug)]
struct CachedProvider {
    asked_at: Timestamp,
    /// Held while one reads the documents, for all who wait for them.
    turn: tokio::sync::Mutex<()>,
    last: Mutex<LastReads>,
}

/// Documents as they were last read, and the problem since then.
#[derive(Debug, Default)]
struct LastReads {
    documents: Option<(Arc<CoreProviderMetadata>, Timestamp)>,
    problem: Option<(String, Timestamp)>,
}

type DocumentsResult = Result<Arc<CoreProviderMetadata>, String>;

/// A person, as the provider proves them.
#[derive(Debug, Clone)]
pub(super) struct ProvedPerson {
    pub(super) subject: String,
    pub(super) email: String,
    pub(super) name: Option<String>,
    /// Time at which they proved their identity to the provider, if it says so.
    pub(super) authenticated_at: Option<Timestamp>,
}

/// The provider of one account at one time.
#[derive(Debug)]
pub(super) struct Provider<'a> {
    pub(super) step: ProviderStep,
    pub(super) cache: &'a ProviderCache,
    pub(super) settings: &'a CompanySignIn,
    /// Address to which the provider sends browsers back.
    pub(super) callback: String,
    pub(super) now: Timestamp,
}

impl ProviderCache {
    /// Returns the entry of a provider, which is new and empty if it has none.
    fn of(&self, issuer: &str, now: Timestamp) -> Arc<CachedProvider> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all.get(issuer) {
            return Arc::clone(known);
        }
        if all.len() >= MAX_PROVIDERS {
            let oldest = all.iter().min_by_key(|(_, it)| it.asked_at).map(|(issuer, _)| issuer.clone());
            oldest.and_then(|oldest| all.remove(&oldest));
        }
        let new =
            Arc::new(CachedProvider { asked_at: now, turn: tokio::sync::Mutex::default(), last: Mutex::default() });
        all.insert(issuer.to_owned(), Arc::clone(&new));
        new
    }
}

impl CachedProvider {
    /// Returns the documents if they are no older than that, or else a recent problem.
    fn get(&self, now: Timestamp, max_age: i64) -> Option<DocumentsResult> {
        let last = self.last();
        // Those who waited for a reader have an earlier time than it.
        let is_within = |at: Timestamp, age: i64| now.since(at).abs() < age;
        let documents = last.documents.as_ref().filter(|(_, at)| is_within(*at, max_age));
        let problem = last.problem.as_ref().filter(|(_, at)| is_within(*at, FAILED_FOR));
        let documents = documents.map(|(documents, _)| Ok(Arc::clone(documents)));
        documents.or_else(|| problem.map(|(problem, _)| Err(problem.clone())))
    }

    fn put(&self, documents: &Arc<CoreProviderMetadata>, now: Timestamp) {
        *self.last() = LastReads { documents: Some((Arc::clone(documents), now)), problem: None };
    }

    fn last(&self) -> MutexGuard<'_, LastReads> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Provider<'_> {
    /// Reads the provider's newest documents, also just after it failed, and checks that a sign-in can work with them.
    ///
    /// # Errors
    /// The problem, in words.
    pub(super) async fn check(&self) -> Result<(), String> {
        let documents = self.read_documents().await?;
        self.cache.of(&self.settings.issuer, self.now).put(&documents, self.now);
        if documents.jwks().keys().is_empty() {
            return Err("the provider publishes no keys for signatures".to_owned());
        }
        let algorithms = documents.id_token_signing_alg_values_supported();
        if !algorithms.iter().any(|algorithm| ALGORITHMS.contains(algorithm)) {
            return Err("the provider signs with no algorithm that counts here, such as RS256 or ES256".to_owned());
        }
        Ok(())
    }

    /// Returns the address at the provider where a person signs in.
    ///
    /// # Errors
    /// [`CompanyRefusal::Unreachable`].
    pub(super) async fn sign_in_url(
        &self,
        (state, nonce, code_verifier): (&str, &str, &str),
        email: &str,
        is_confirmation: bool,
    ) -> Result<String, CompanyRefusal> {
        let documents = self.documents(KEPT_FOR).await.map_err(CompanyRefusal::Unreachable)?;
        let client = CoreClient::from_provider_metadata(
            (*documents).clone(),
            ClientId::new(self.settings.client_id.clone()),
            None,
        )
        .set_redirect_uri(self.redirect_url()?);
        let verifier = PkceCodeVerifier::new(code_verifier.to_owned());
        let (state, nonce) = (state.to_owned(), nonce.to_owned());
        let mut request = client
            .authorize_url(
                CoreAuthenticationFlow::AuthorizationCode,
                move || CsrfToken::new(state),
                move || Nonce::new(nonce),
            )
            .add_scope(Scope::new("email".to_owned()))
            .add_scope(Scope::new("profile".to_owned()))
            .set_pkce_challenge(PkceCodeChallenge::from_code_verifier_sha256(&verifier));
        if !email.is_empty() {
            request = request.set_login_hint(LoginHint::new(email.to_owned()));
        }
        if is_confirmation {
            request = request.add_prompt(CoreAuthPrompt::Login).set_max_age(std::time::Duration::ZERO);
        }
        Ok(request.url().0.to_string())
    }

    /// Exchanges the code for the provider's proof, and verifies it.
    ///
    /// # Errors
    /// The reason why it proves nobody.
    pub(super) async fn prove(
        &self,
        pending: &PendingCompanySignIn,
        code: &str,
    ) -> Result<ProvedPerson, CompanyRefusal> {
        let documents = self.documents(KEPT_FOR).await.map_err(CompanyRefusal::Unreachable)?;
        let secret = &self.settings.client_secret;
        let client = CoreClient::from_provider_metadata(
            (*documents).clone(),
            ClientId::new(self.settings.client_id.clone()),
            (!secret.is_empty()).then(|| ClientSecret::new(secret.clone())),
        )
        .set_redirect_uri(self.redirect_url()?)
        .set_auth_type(auth_type(&documents));
        let no_tokens = || CompanyRefusal::Unreachable("The provider names no address for tokens".to_owned());
        let exchange = client.exchange_code(AuthorizationCode::new(code.to_owned())).map_err(|_| no_tokens())?;
        let exchange = exchange.set_pkce_verifier(PkceCodeVerifier::new(pending.code_verifier.clone()));
        let tokens = exchange.request_async(&self.step).await.map_err(token_refusal)?;
        let token = tokens.id_token().ok_or(CompanyRefusal::InvalidProof("The provider sent no ID token"))?;
        let claims = self.verified_claims(&documents, token, &Nonce::new(pending.nonce.clone())).await?;
        if claims.subject().len() > MAX_SUBJECT || claims.subject().is_empty() {
            return Err(CompanyRefusal::InvalidProof("The provider's name of the person is too long"));
        }
        let name = |name: Option<&str>| name.map(str::to_owned);
        let mut person = ProvedPerson {
            subject: claims.subject().to_string(),
            email: claims.email().map(|email| email.to_string()).unwrap_or_default(),
            name: name(claims.name().and_then(|it| it.get(None)).map(|it| it.as_str())),
            authenticated_at: claims.auth_time().map(|at| Timestamp::from_millis(at.timestamp_millis())),
        };
        let mut is_verified = claims.email_verified().unwrap_or(false);
        if person.email.is_empty() {
            // Many providers say it at their userinfo address alone.
            let request = client.user_info(tokens.access_token().clone(), Some(claims.subject().clone()));
            let request = request.map_err(|_| CompanyRefusal::NoEmail)?;
            let info: Result<CoreUserInfoClaims, _> = request.request_async(&self.step).await;
            let info = info.map_err(|error| {
                tracing::debug!(%error, "a provider's userinfo can't be read");
                CompanyRefusal::NoEmail
            })?;
            person.email = info.email().map(|email| email.to_string()).unwrap_or_default();
            person.name = person.name.or_else(|| name(info.name().and_then(|it| it.get(None)).map(|it| it.as_str())));
            is_verified = info.email_verified().unwrap_or(false);
        }
        if person.email.is_empty() {
            Err(CompanyRefusal::NoEmail)
        } else if is_verified {
            Ok(person)
        } else {
            Err(CompanyRefusal::UnverifiedEmail(person.email))
        }
    }

    /// Verifies an ID token; with the provider's newest keys if it is signed with one that is not known yet.
    async fn verified_claims(
        &self,
        documents: &CoreProviderMetadata,
        token: &CoreIdToken,
        nonce: &Nonce,
    ) -> Result<CoreIdTokenClaims, CompanyRefusal> {
        match self.claims(documents, token, nonce) {
            Err(ClaimsVerificationError::SignatureVerification(SignatureVerificationError::NoMatchingKey)) => {
                let newest = self.documents(RENEW_AFTER).await.map_err(CompanyRefusal::Unreachable)?;
                self.claims(&newest, token, nonce)
            }
            verified => verified,
        }
        .map_err(|error| {
            tracing::debug!(%error, "a provider's ID token is not valid");
            CompanyRefusal::InvalidProof(proof_problem(&error))
        })
    }

    fn claims(
        &self,
        documents: &CoreProviderMetadata,
        token: &CoreIdToken,
        nonce: &Nonce,
    ) -> Result<CoreIdTokenClaims, ClaimsVerificationError> {
        let client =
            CoreClient::from_provider_metadata(documents.clone(), ClientId::new(self.settings.client_id.clone()), None);
        let now = DateTime::<Utc>::from_timestamp_millis(self.now.as_millis() - LEEWAY).unwrap_or(DateTime::UNIX_EPOCH);
        let verifier = client.id_token_verifier().set_allowed_algs(ALGORITHMS).set_time_fn(move || now);
        token.claims(&verifier, nonce).cloned()
    }

    /// Returns the provider's documents, no older than that. One reads them for all who ask at the same time, so that
    /// strangers can't make this service flood a provider, nor hold many connections to one that does not answer.
    async fn documents(&self, max_age: i64) -> DocumentsResult {
        let cached = self.cache.of(&self.settings.issuer, self.now);
        if let Some(known) = cached.get(self.now, max_age) {
            return known;
        }
        let _turn = cached.turn.lock().await;
        if let Some(known) = cached.get(self.now, max_age) {
            return known;
        }
        let read = self.read_documents().await;
        match &read {
            Ok(documents) => cached.put(documents, self.now),
            Err(problem) => cached.last().problem = Some((problem.clone(), self.now)),
        }
        read
    }

    async fn read_documents(&self) -> DocumentsResult {
        let issuer =
            IssuerUrl::new(self.settings.issuer.clone()).map_err(|_| "the address can't be read".to_owned())?;
        let documents = CoreProviderMetadata::discover_async(issuer, &self.step).await.map_err(discovery_problem)?;
        let pages = [Some(documents.authorization_endpoint().url()), documents.token_endpoint().map(|it| it.url())];
        let is_allowed = |url: &&Url| self.step.is_allowed(url);
        if let Some(url) = pages.into_iter().flatten().find(|url| !is_allowed(url)) {
            return Err(format!("the provider names an address that is not https: {url}"));
        }
        Ok(Arc::new(documents))
    }

    fn redirect_url(&self) -> Result<RedirectUrl, CompanyRefusal> {
        RedirectUrl::new(self.callback.clone())
            .map_err(|_| CompanyRefusal::Unreachable("The address of this service can't be read".to_owned()))
    }
}

/// Sends the client secret in the way that the provider reads: in a header, unless it says that it does not.
fn auth_type(documents: &CoreProviderMetadata) -> AuthType {
    match documents.token_endpoint_auth_methods_supported() {
        Some(methods)
            if methods.contains(&CoreClientAuthMethod::ClientSecretPost)
                && !methods.contains(&CoreClientAuthMethod::ClientSecretBasic) =>
        {
            AuthType::RequestBody
        }
        _ => AuthType::BasicAuth,
    }
}

fn discovery_problem(error: DiscoveryError<ProviderRequestError>) -> String {
    match error {
        DiscoveryError::Request(error) => error.to_string(),
        DiscoveryError::Response(status, ..) if status.is_redirection() => {
            format!(
                "the provider redirects its configuration (status {}): enter the address it leads to",
                status.as_u16()
            )
        }
        DiscoveryError::Response(status, ..) => {
            format!("the provider has no configuration at this address (status {})", status.as_u16())
        }
        DiscoveryError::Parse(_) => "the provider's configuration can't be read".to_owned(),
        DiscoveryError::Validation(_) => {
            "the provider names itself by another address: enter it exactly as the provider writes its issuer"
                .to_owned()
        }
        _ => "the provider's configuration can't be used".to_owned(),
    }
}

fn token_refusal<T>(error: RequestTokenError<ProviderRequestError, T>) -> CompanyRefusal
where
    T: openidconnect::ErrorResponse + std::fmt::Display + 'static,
{
    match error {
        RequestTokenError::ServerResponse(answer) => {
            tracing::debug!(%answer, "a provider refused a code");
            CompanyRefusal::InvalidProof("The provider did not accept the code, or the client secret")
        }
        RequestTokenError::Request(error) => CompanyRefusal::Unreachable(sentence(&error.to_string())),
        RequestTokenError::Parse(..) | RequestTokenError::Other(_) => {
            CompanyRefusal::InvalidProof("The provider's answer can't be read")
        }
    }
}

const fn proof_problem(error: &ClaimsVerificationError) -> &'static str {
    match error {
        ClaimsVerificationError::Expired(_) => "The provider's ID token has expired",
        ClaimsVerificationError::InvalidAudience(_) => "The provider's ID token is for another service",
        ClaimsVerificationError::InvalidIssuer(_) => "The ID token is from another provider",
        ClaimsVerificationError::InvalidNonce(_) => "The provider's ID token is of another sign-in",
        ClaimsVerificationError::SignatureVerification(
            SignatureVerificationError::DisallowedAlg(_) | SignatureVerificationError::NoSignature,
        ) => "The provider's ID token is signed by an algorithm that does not count",
        ClaimsVerificationError::SignatureVerification(_) => "The signature of the provider's ID token is wrong",
        _ => "The provider's ID token can't be read",
    }
}

/// Begins a text with a capital letter.
pub(super) fn sentence(text: &str) -> String {
    let mut signs = text.chars();
    signs.next().map(|first| first.to_uppercase().chain(signs).collect()).unwrap_or_default()
}
