//! Probes: one check in, one report out. A report never says more than what this place saw.
//!
//! [`run`] is the whole interface. Each probe gathers facts with IO and judges them in a pure function at
//! the bottom of its files.

mod certificate;
mod component;
mod dns;
mod domain;
mod facts;
mod http;
pub mod net;
mod ping;
mod tcp;
mod tls;
mod vendor;

use parallax_protocol::{
    check::{CheckKind, CheckSpec},
    result::Report,
};

pub use net::Net;

/// The types of checks that the probes of this build can do.
pub const KINDS: &[CheckKind] = &CheckKind::ALL;

/// Runs one check and ends within the limit of `net`.
///
/// Whatever happens becomes an outcome: the target's faults are [failed](parallax_protocol::result::Outcome::Failed), this host's are
/// [inconclusive](parallax_protocol::result::Outcome::Inconclusive). [Pending](parallax_protocol::result::Outcome::Pending) is never returned; the caller sends it for a check that is still
/// running. Dropping the future ends the check and closes its connections.
pub async fn run(spec: &CheckSpec, net: &Net) -> Report {
    match spec {
        CheckSpec::Http(check) => http::run(check, net).await,
        CheckSpec::Tcp(check) => tcp::run(check, net).await,
        CheckSpec::Dns(check) => dns::run(check, net).await,
        CheckSpec::Ping(check) => ping::run(check, net).await,
        CheckSpec::Certificate(check) => certificate::run(check, net).await,
        CheckSpec::Domain(check) => domain::run(check, net).await,
        CheckSpec::Component(check) => component::run(check, net).await,
    }
}
