//! Persons who sign in to the dashboard: set-up of an account, invitations to it, sign-in by passkey, password or mailed
//! link, a new password, and their sessions.
//!
//! A session is found by the hash of a secret in the browser's cookie, and each sign-in makes a new one. An unknown
//! address, a wrong password and a person without an account are answered alike, after the same work.

mod account_choice;
mod browser;
mod company;
mod counted_try;
mod first_site;
mod invitation_limits;
mod invitations;
mod joining;
mod links;
mod log_limits;
mod member_changes;
mod members;
mod passkeys;
mod password_reset;
mod passwords;
mod second_factor;
mod sessions;
mod set_up;
#[cfg(test)]
mod tests;

use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use parallax_core::id::{AccountId, PersonId};
use parallax_core::login_delay::LoginDelays;
use parallax_core::login_session::{LoginSession, LoginSessionId};
use parallax_core::person::{AccountMember, Person};
use parallax_core::rate_limit::FixedWindowLimit;
use parallax_core::role::Role;
use parallax_core::time::{HOUR, Timestamp};
use parallax_store::VersionedValue;

pub use self::account_choice::AccountChoice;
pub use self::browser::{BrowserInfo, SessionToken};
use self::company::CompanyState;
pub use self::company::{
    CompanyAnswer, CompanyOptions, CompanyProvider, CompanyRefusal, CompanySettings, CompanySignInStart,
    ProviderClient, ProviderEdit,
};
pub use self::first_site::{FirstSite, PLACEHOLDER_PAGE};
use self::invitation_limits::InvitationLimits;
pub use self::invitation_limits::{INVITATIONS_PER_DAY, INVITATIONS_PER_HOUR, INVITATIONS_PER_MAILBOX};
pub use self::invitations::MemberInvitation;
pub use self::joining::{InvitedPerson, JoinDetails, JoinInvitation};
pub use self::links::DashboardLinkRequest;
use self::log_limits::LogLimits;
pub use self::member_changes::MemberDetails;
pub use self::members::NewPerson;
use self::passkeys::RelyingParty;
use self::passkeys::ceremonies::PasskeyCeremonies;
#[cfg(any(test, feature = "test-world"))]
pub use self::passkeys::soft_authenticator;
pub use self::passkeys::{PasskeyAnswer, PasskeyChallenge};
pub use self::passwords::PasswordSignIn;
use self::second_factor::PendingSignIns;
pub use self::second_factor::{CodeSignIn, FactorNeed, FactorSetUp, PENDING_SECONDS, SecondSteps, SignInStep};
pub use self::set_up::{SetUpAccount, SetUpDetails};
use crate::audit::ChangeAuthor;
use crate::context::ServiceContext;
use crate::hosts::domains::TxtLookup;
use crate::last_uses::LastUses;
use crate::{Actor, Caller, ServiceError, ServiceResult};

/// Failed sign-ins of an email address within an hour, before delays begin.
const FREE_TRIES_PER_EMAIL: u32 = 10;
/// Failed sign-ins of an address block within an hour, before delays begin.
const FREE_TRIES_PER_NETWORK: u32 = 30;

/// Owns persons, their sessions and one-time links.
#[derive(Debug)]
pub struct PeopleService {
    context: Arc<ServiceContext>,
    uses: LastUses<LoginSessionId>,
    /// Failed sign-ins by hash of the email address, whether anyone has it or not.
    email_delays: Mutex<LoginDelays<[u8; 32]>>,
    /// Failed sign-ins by address block.
    network_delays: Mutex<LoginDelays<u128>>,
    /// Links for sign-in and for a new password sent, by mailbox.
    link_limit: Mutex<FixedWindowLimit<String>>,
    /// Failed sign-ins and switches that were logged.
    log_limits: LogLimits,
    /// Invitations sent.
    invitation_limits: InvitationLimits,
    /// Company sign-ins that were begun, and the providers' documents.
    company: CompanyState,
    /// Source of TXT records, which prove email domains.
    txt_lookup: Arc<dyn TxtLookup>,
    /// Sign-ins that wait for the code of a second factor.
    pending_sign_ins: PendingSignIns,
    /// The dashboard as passkeys know it; none where browsers have no passkeys.
    relying_party: Option<RelyingParty>,
    /// Ceremonies of passkeys that wait for their answer.
    passkey_ceremonies: PasskeyCeremonies,
}

/// A valid session with its person.
#[derive(Debug, Clone)]
pub struct CurrentSession {
    /// The session.
    pub session: LoginSession,
    /// The person.
    pub person: Person,
    /// Their role in the session's account.
    pub role: Role,
    /// Time until which the account lets them go without a second factor; none if they have one or need none.
    pub factor_due: Option<Timestamp>,
    /// Address that the request came from; none if unknown.
    pub address: Option<IpAddr>,
}

impl CurrentSession {
    /// The person as the author of changes.
    pub(crate) fn author(&self) -> ChangeAuthor {
        ChangeAuthor::from(&self.caller())
    }

    /// Returns true if the person must set up a second factor before anything else.
    pub fn is_factor_overdue(&self, now: Timestamp) -> bool {
        self.factor_due.is_some_and(|due| now.since(due) >= 0)
    }

    /// Returns true if the person operates the installation, and signed in by their own means: a company's provider gives
    /// nobody the rights of an operator.
    pub const fn is_operator(&self) -> bool {
        self.person.is_operator && !self.session.is_company
    }

    /// Key of the address block that the request came from; none if unknown.
    pub(crate) fn network_key(&self) -> Option<u128> {
        BrowserInfo::new(self.address, "", None).network_key
    }

    /// The person as a caller of the services.
    pub fn caller(&self) -> Caller {
        let (id, is_operator) = (self.person.id, self.is_operator());
        let name = self.person.display_name().to_owned();
        let actor = Actor::Person { id, name, role: self.role, is_operator };
        Caller { actor, account: self.session.account, page: None, address: self.address }
    }
}

/// A new session, with the secret for the browser's cookie.
#[derive(Debug, Clone)]
pub struct NewSession {
    /// The secret, which is stored nowhere else.
    pub token: SessionToken,
    /// The session.
    pub session: LoginSession,
}

impl PeopleService {
    pub(crate) fn new(
        context: &Arc<ServiceContext>,
        txt_lookup: Arc<dyn TxtLookup>,
        provider_client: Option<ProviderClient>,
    ) -> Self {
        Self {
            context: Arc::clone(context),
            company: CompanyState::new(provider_client),
            txt_lookup,
            uses: LastUses::default(),
            email_delays: Mutex::new(LoginDelays::new(FREE_TRIES_PER_EMAIL)),
            network_delays: Mutex::new(LoginDelays::new(FREE_TRIES_PER_NETWORK)),
            link_limit: Mutex::new(FixedWindowLimit::new(HOUR)),
            log_limits: LogLimits::default(),
            invitation_limits: InvitationLimits::new(),
            pending_sign_ins: PendingSignIns::default(),
            relying_party: RelyingParty::of(context.base_url()),
            passkey_ceremonies: PasskeyCeremonies::default(),
        }
    }

    /// Returns true if mails are sent: the operator named a mail server, or a folder.
    pub fn sends_mail(&self) -> bool {
        self.context.settings().sends_mail
    }

    /// Returns the token that every form of a session holds: an HMAC, so that nothing of it is stored.
    pub fn form_token(&self, session: LoginSessionId) -> String {
        hex::encode(self.context.mac_prefix::<16>(&[b"form", &session.0]))
    }

    fn person(&self, id: PersonId) -> ServiceResult<VersionedValue<Person>> {
        self.context.store().reader().person(id)?.ok_or(ServiceError::NotFound)
    }

    /// Returns the account that a person sees first: the one that they joined first.
    fn first_membership(&self, person: PersonId) -> ServiceResult<Option<AccountMember>> {
        let memberships = self.context.store().reader().memberships_of(person)?;
        let memberships = memberships.into_iter().map(|it| it.value);
        Ok(memberships.min_by_key(|it| (it.joined_at, it.account)))
    }

    fn role_in(&self, account: AccountId, person: PersonId) -> ServiceResult<Option<Role>> {
        Ok(self.context.store().reader().account_member(account, person)?.map(|it| it.value.role))
    }
}
