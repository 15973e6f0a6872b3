//! The service layer: every operation and rule once, shared by the API, the dashboard and the command line.
//!
//! [`Services`] has one service per subject; all work on one `ServiceContext`. A [`Caller`] is an authenticated API
//! key or a signed-in person; what they can't access is [`ServiceError::NotFound`], with the same work as for what does
//! not exist. Every change is one batch: the record, its preconditions, and an event. After a conflict with another
//! change it is read and decided again. Operations that no caller may use are documented as called by the operator.

pub mod accounts;
pub mod audit;
mod caller;
mod client_network;
mod context;
pub mod dashboard;
pub mod domain_verification;
mod driver_queries;
pub mod evidence;
pub mod hosts;
pub mod idempotency;
pub mod incidents;
mod last_editor;
mod last_uses;
pub mod mesh;
pub mod monitors;
mod notifications;
pub mod page_access;
pub mod pages;
mod parts;
pub mod people;
pub mod public_pages;
mod records;
pub mod secret_text;
pub mod statistics;
pub mod store_admin;
pub mod undo;
pub mod undo_offer;

use std::sync::Arc;

use parallax_core::plan::PlanLimitError;
use parallax_core::role::Role;
use parallax_core::subscriber::confirmation_limit::{ConfirmationOrigin, PER_PAGE_MINUTE};
use parallax_core::time::Timestamp;
use parallax_core::validation::ValidationErrors;
use parallax_engine::MAX_PINGS_PER_SECOND;
use parallax_store::StoreError;
use tokio::sync::{Notify, watch};

use self::accounts::AccountService;
use self::accounts::keys::KeyService;
use self::alert_settings::AlertSettingsService;
use self::audit::AuditService;
pub use self::caller::{Actor, ActorId, Caller};
use self::context::ServiceContext;
pub use self::context::ServiceSettings;
use self::dashboard::DashboardService;
use self::deliveries::DeliveryService;
use self::destinations::DestinationService;
use self::evidence::EvidenceService;
use self::hosts::HostService;
use self::hosts::domains::DomainService;
use self::idempotency::IdempotencyKey;
use self::incidents::IncidentService;
use self::mesh::MeshService;
use self::monitors::MonitorService;
use self::monitors::history::HistoryService;
use self::monitors::pings::PingService;
use self::notifications::confirmation_limits::ConfirmationLimits;
pub use self::notifications::{alert_settings, deliveries, destinations, subscribers};
use self::page_access::PageAccessService;
use self::pages::PageService;
use self::pages::deploys::DeployService;
pub use self::parts::ServiceParts;
use self::people::PeopleService;
use self::public_pages::PublicPageService;
use self::store_admin::StoreService;
use self::subscribers::SubscriberService;
use self::undo::{UndoParts, UndoService};

/// All services, by subject.
#[derive(Debug)]
pub struct Services {
    /// Accounts, their plans and usage.
    pub accounts: AccountService,
    /// API keys.
    pub keys: Arc<KeyService>,
    /// Pages as their owners manage them.
    pub pages: Arc<PageService>,
    /// Deploy markers of pages.
    pub deploys: DeployService,
    /// Hostnames that are served here.
    pub hosts: Arc<HostService>,
    /// Custom domains of pages.
    pub domains: Arc<DomainService>,
    /// Monitors with their states.
    pub monitors: Arc<MonitorService>,
    /// Histories of monitors, and the agents that run checks.
    pub history: Arc<HistoryService>,
    /// Evidence links in alerts.
    pub evidence: Arc<EvidenceService>,
    /// Pings of heartbeats.
    pub pings: PingService,
    /// Incidents and maintenance windows.
    pub incidents: Arc<IncidentService>,
    /// Alert settings of pages.
    pub alert_settings: AlertSettingsService,
    /// Destinations of alerts.
    pub destinations: Arc<DestinationService>,
    /// Deliveries and their outcomes.
    pub deliveries: DeliveryService,
    /// Subscribers of pages.
    pub subscribers: Arc<SubscriberService>,
    /// Persons who sign in to the dashboard.
    pub people: PeopleService,
    /// Authorization and sign-in of visitors.
    pub page_access: PageAccessService,
    /// Data of public pages.
    pub public_pages: PublicPageService,
    /// Data of the dashboard's screens.
    pub dashboard: DashboardService,
    /// The mesh, for operators.
    pub mesh: MeshService,
    /// The store, for the operator.
    pub store: StoreService,
    /// Audit logs of accounts.
    pub audit: AuditService,
    /// Undo of changes that were made a moment ago.
    pub undo: Arc<UndoService>,
    context: Arc<ServiceContext>,
}

impl Services {
    /// Creates the services over one context.
    pub fn new(parts: ServiceParts) -> Arc<Self> {
        let ServiceParts { store, clock, queries, pings, statistics, mesh, txt_lookup, settings, .. } = parts;
        let (provider_client, certificate_problems) = (parts.provider_client, parts.certificate_problems);
        let context = &Arc::new(ServiceContext::new(store, clock, queries, statistics, settings));
        let keys = Arc::new(KeyService::new(context));
        let hosts = Arc::new(HostService::new(context, certificate_problems));
        let monitors = Arc::new(MonitorService::new(context, pings.clone()));
        let history = Arc::new(HistoryService::new(context));
        let incidents = Arc::new(IncidentService::new(context));
        let limits = Arc::new(ConfirmationLimits::new(context));
        let subscribers = Arc::new(SubscriberService::new(context, &limits));
        let destinations = Arc::new(DestinationService::new(context, &limits));
        let undo = UndoParts {
            monitors: Arc::clone(&monitors),
            subscribers: Arc::clone(&subscribers),
            destinations: Arc::clone(&destinations),
            keys: Arc::clone(&keys),
        };
        Arc::new(Self {
            accounts: AccountService::new(context),
            pages: Arc::new(PageService::new(context, &keys)),
            deploys: DeployService::new(context),
            domains: Arc::new(DomainService::new(context, Arc::clone(&txt_lookup))),
            evidence: Arc::new(EvidenceService::new(context)),
            pings: PingService::new(context, pings),
            alert_settings: AlertSettingsService::new(context),
            destinations,
            deliveries: DeliveryService::new(context),
            audit: AuditService::new(context),
            undo: Arc::new(UndoService::new(context, undo)),
            subscribers,
            people: PeopleService::new(context, Arc::clone(&txt_lookup), provider_client),
            page_access: PageAccessService::new(context, &hosts),
            public_pages: PublicPageService::new(context, &monitors, &incidents, &history),
            dashboard: DashboardService::new(context, &history),
            mesh: MeshService::new(mesh),
            store: StoreService::new(context),
            keys,
            hosts,
            monitors,
            history,
            incidents,
            context: Arc::clone(context),
        })
    }

    /// Address of the dashboard, the API and pings, without a trailing slash.
    pub fn base_url(&self) -> &str {
        self.context.base_url()
    }

    /// Returns the current time.
    pub fn now(&self) -> Timestamp {
        self.context.now()
    }

    /// Returns the signal for stored or due deliveries, on which the deliverer waits.
    pub fn deliveries_due(&self) -> Arc<Notify> {
        Arc::clone(&self.context.deliveries_due)
    }

    /// Watches the number of the newest event.
    pub fn watch_events(&self) -> watch::Receiver<u64> {
        self.context.store().subscribe_events()
    }

    /// Watches the number of the last edit.
    pub fn watch_edits(&self) -> watch::Receiver<u64> {
        self.context.edits.clone()
    }

    /// Returns the number of the last event of an edit of anything, such as a page. While it is unchanged, the
    /// authorization of public pages is too.
    pub fn last_edit(&self) -> u64 {
        self.context.last_edit()
    }

    /// Returns true if that request was executed before and will be replayed.
    ///
    /// # Errors
    /// [`ServiceError::Internal`] if the store can't be read.
    pub fn is_replay(&self, key: &IdempotencyKey) -> ServiceResult<bool> {
        self.context.is_replay(key)
    }
}

/// Errors of the service layer: one variant for each error code of the API.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ServiceError {
    /// The API key is missing or invalid.
    #[error("a valid API key is required")]
    Unauthenticated,
    /// A read key was used to write.
    #[error("this key may only read")]
    ReadOnly,
    /// The signed-in person's role lacks the permission.
    #[error("your role ({}) may not do this", role.name())]
    RoleForbids {
        /// Their role in the account.
        role: Role,
    },
    /// No object with that id that the key can access.
    #[error("not found, or not accessible with this key")]
    NotFound,
    /// The input breaks rules.
    #[error("{0}")]
    Invalid(#[from] ValidationErrors),
    /// The key is bound to one page, and the operation is not about a page.
    #[error("this key is limited to one page")]
    KeyBoundToPage,
    /// The idempotency key was used with another request before.
    #[error("this Idempotency-Key was already used for another request")]
    IdempotencyKeyReused,
    /// The monitor was checked on request a moment ago.
    #[error("this monitor was just checked; try again in {seconds} seconds")]
    CheckNowTooSoon {
        /// Seconds until a retry.
        seconds: u32,
    },
    /// The person checked monitors on request too often within a minute.
    #[error("a person can check {} monitors a minute; try again in {seconds} seconds", monitors::CHECKS_PER_MINUTE)]
    CheckNowLimit {
        /// Seconds until the minute is over.
        seconds: u32,
    },
    /// The account tested unsaved monitors too often within a minute.
    #[error(
        "an account can test {} unsaved monitors a minute; try again in {seconds} seconds",
        monitors::TESTS_PER_MINUTE
    )]
    MonitorTestLimit {
        /// Seconds until the minute is over.
        seconds: u32,
    },
    /// The page's domain was looked up on request a moment ago.
    #[error("this page's domain was just checked; try again in {seconds} seconds")]
    DomainCheckTooSoon {
        /// Seconds until a retry.
        seconds: u32,
    },
    /// The page's destinations were tested too often within a minute.
    #[error("a page's destinations can be tested {} times a minute; try again in {seconds} seconds", deliveries::TESTS)]
    PageTestLimit {
        /// Seconds until the minute is over.
        seconds: u32,
    },
    /// The page sent too many confirmation requests within a minute.
    #[error("a page can send {PER_PAGE_MINUTE} confirmation requests a minute; try again in {seconds} seconds")]
    PageConfirmationLimit {
        /// Seconds until the minute is over.
        seconds: u32,
    },
    /// The account sent too many confirmation requests within an hour.
    #[error(
        "an account can send {limit} confirmation requests an hour ({}); try again in {seconds} seconds",
        origin.description()
    )]
    AccountConfirmationLimit {
        /// Cause of the requests: visitors or the owner.
        origin: ConfirmationOrigin,
        /// The current limit.
        limit: u32,
        /// Seconds until the hour is over.
        seconds: u32,
    },
    /// The account's destinations were tested too often within an hour.
    #[error(
        "an account's destinations can be tested {} times an hour; try again in {seconds} seconds",
        deliveries::ACCOUNT_TESTS
    )]
    AccountTestLimit {
        /// Seconds until the hour is over.
        seconds: u32,
    },
    /// Subscribers were notified too often within an hour.
    #[error("{scope} can be notified {limit} times an hour; try again in {seconds} seconds, or set notify to false")]
    NotificationLimit {
        /// Subscribers of a page, or of an account.
        scope: &'static str,
        /// The limit.
        limit: u32,
        /// Seconds until the hour is over.
        seconds: u32,
    },
    /// No person has that email address and password.
    #[error("email or password is wrong")]
    WrongCredentials,
    /// Too many sign-ins failed; the delay grows with each failure.
    #[error("too many tries; wait {seconds} seconds")]
    TooManyTries {
        /// Seconds until the next try.
        seconds: u32,
    },
    /// The account sent too many invitations, or all accounts of the installation did.
    #[error(
        "an account can send {} invitations an hour, {} a day, and {} an hour to one mailbox; try again in {seconds} \
         seconds",
        people::INVITATIONS_PER_HOUR,
        people::INVITATIONS_PER_DAY,
        people::INVITATIONS_PER_MAILBOX
    )]
    InvitationLimit {
        /// Seconds until the day or hour is over.
        seconds: u32,
    },
    /// The person must confirm first that it's them.
    #[error("confirm first that it's you")]
    ConfirmationRequired,
    /// The queue of password checks is full, or the driver does not answer.
    #[error("the service is too busy to answer; try again in {seconds} seconds")]
    Busy {
        /// Seconds until a retry.
        seconds: u32,
    },
    /// No heartbeat has this ping URL.
    #[error(
        "no heartbeat has this ping URL: send pings to the monitor's `pingUrl`, alone or followed by /start, /fail, \
         /log or an exit code from 0 to 255"
    )]
    UnknownPing,
    /// The token exceeded its pings in this second.
    #[error("more than {MAX_PINGS_PER_SECOND} pings in one second")]
    TooManyPings,
    /// The plan does not allow it.
    #[error("{0}")]
    PlanLimit(#[from] PlanLimitError),
    /// The disk is full; the store has logged it.
    #[error("the disk is full")]
    DiskFull,
    /// An internal fault; the text is for the log.
    #[error("{0}")]
    Internal(String),
}

impl From<StoreError> for ServiceError {
    fn from(error: StoreError) -> Self {
        if error == StoreError::Full { Self::DiskFull } else { Self::Internal(error.to_string()) }
    }
}

/// Result of the service's operations.
pub type ServiceResult<T> = std::result::Result<T, ServiceError>;

#[cfg(any(test, feature = "test-world"))]
#[allow(clippy::unwrap_used, clippy::expect_used, reason = "for tests only")]
pub mod test_world;
#[cfg(test)]
mod tests;
