//! Company sign-in: an account's members sign in with the OpenID Connect provider of their company.
//!
//! The provider is trusted for its account alone. A session that begins by it opens that account and no other, has no
//! rights of an operator, and changes nothing that counts for other accounts of the person: password, second factor,
//! sessions elsewhere. An email address counts only if the provider says that it verified it, and only in a domain that
//! the account proved by DNS. The provider's subject is bound to the membership at the first sign-in, so that an
//! address that the company gives to another person later opens nothing.
//!
//! Of a person with a second factor the code is asked for, unless the account says that its provider asks for one.

mod domains;
mod gate;
mod pending;
mod provider;
mod provider_client;
mod refusal;
mod settings;
mod sign_in;

use std::sync::Mutex;

use parallax_core::id::AccountId;
use parallax_core::rate_limit::FixedWindowLimit;
use parallax_core::time::{MINUTE, Timestamp};

use self::pending::PendingCompanySignIns;
use self::provider::ProviderCache;
pub use self::provider_client::ProviderClient;
pub use self::refusal::CompanyRefusal;
pub(super) use self::settings::shuts_members_out;
pub use self::settings::{CompanyOptions, CompanySettings, ProviderEdit};
pub use self::sign_in::{CompanyAnswer, CompanyProvider, CompanySignInStart};

/// Proof that a company's provider knows a person.
#[derive(Debug, Clone, Copy)]
pub(in crate::people) struct CompanyProof {
    /// Hash of who they are at the provider, which their session is bound to.
    pub(in crate::people) subject: [u8; 32],
    /// True if the provider asks for a second factor, in the account's words.
    pub(in crate::people) covers_second_factor: bool,
    /// Time at which the person proved their identity to the provider.
    pub(in crate::people) confirmed_at: Timestamp,
}

/// State of company sign-in that is in memory alone.
#[derive(Debug)]
pub(super) struct CompanyState {
    client: Option<ProviderClient>,
    providers: ProviderCache,
    pending: PendingCompanySignIns,
    /// Tests of providers and look-ups of domains, by account.
    test_limit: Mutex<FixedWindowLimit<AccountId>>,
}

impl CompanyState {
    /// Creates the state, with a client that reaches providers.
    pub(super) fn new(client: Option<ProviderClient>) -> Self {
        Self {
            client,
            providers: ProviderCache::default(),
            pending: PendingCompanySignIns::default(),
            test_limit: Mutex::new(FixedWindowLimit::new(MINUTE)),
        }
    }
}
