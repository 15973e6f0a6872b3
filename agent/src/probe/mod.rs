//! Probes: one check in, one report out. A report never says more than what this place saw.
//!
//! [`run`] is the whole interface. Each probe gathers facts with IO and judges them in a pure function at
//! the bottom of its files.

mod facts;
mod http;
pub mod net;
mod tcp;
mod tls;

use parallax_protocol::{
    check::CheckSpec,
    result::{Outcome, OwnFault, Report},
};

pub use net::Net;

/// Runs one check and ends within the limit of `net`.
///
/// Whatever happens becomes an outcome: the target's faults are [`Outcome::Failed`], this host's are
/// [`Outcome::Inconclusive`]. [`Outcome::Pending`] is never returned; the caller sends it for a check that is still
/// running. Dropping the future ends the check and closes its connections.
pub async fn run(spec: &CheckSpec, net: &Net) -> Report {
    match spec {
        // Each on the heap: a check's future is moved a few times before it begins, and should not be as large as the
        // largest of them.
        CheckSpec::Http(check) => Box::pin(http::run(check, net)).await,
        CheckSpec::Tcp(check) => Box::pin(tcp::run(check, net)).await,
        CheckSpec::Dns(_)
        | CheckSpec::Ping(_)
        | CheckSpec::Certificate(_)
        | CheckSpec::Domain(_)
        | CheckSpec::Component(_) => Report::bare(Outcome::Inconclusive(OwnFault::NotBuilt)),
    }
}
