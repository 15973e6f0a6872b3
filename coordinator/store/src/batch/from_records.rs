//! Writes of records: each kind of record converts to the operation that stores it.

use parallax_core::account::Account;
use parallax_core::audit::AuditEntry;
use parallax_core::company_sign_in::CompanySignIn;
use parallax_core::delivery::Delivery;
use parallax_core::deploy::Deploy;
use parallax_core::destination::Destination;
use parallax_core::incident::Incident;
use parallax_core::incident::series::Series;
use parallax_core::key::ApiKey;
use parallax_core::login_session::LoginSession;
use parallax_core::member::{AgentRecord, Invitation};
use parallax_core::monitor::Monitor;
use parallax_core::one_time_link::OneTimeLink;
use parallax_core::page::Page;
use parallax_core::person::{AccountMember, Person};
use parallax_core::subscriber::{Bulletin, Subscriber};

use super::Op;

macro_rules! puts {
    ($($value:ident => $op:ident),*) => {$(
        impl From<$value> for Op {
            fn from(value: $value) -> Self {
                Self::$op(Box::new(value))
            }
        }
    )*};
}

puts! {
    Account => PutAccount, Page => PutPage, Monitor => PutMonitor, ApiKey => PutKey, AgentRecord => PutAgent,
    Invitation => PutInvitation, Incident => PutIncident, Series => PutSeries, Deploy => PutDeploy, Destination => PutDestination,
    Subscriber => PutSubscriber, Bulletin => PutBulletin, Delivery => PutDelivery, Person => PutPerson,
    AccountMember => PutAccountMember, LoginSession => PutLoginSession, OneTimeLink => PutOneTimeLink,
    AuditEntry => AppendAuditEntry, CompanySignIn => PutCompanySignIn
}
