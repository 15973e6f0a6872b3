//! The tcp probe: opens a connection.

use parallax_dial::{DialedConnection, Host};
use parallax_protocol::{
    check::WireTcpCheck,
    result::{ProbeReport, WireOutcome},
};
use tokio::time::Instant;

use super::{
    context::ProbeContext,
    facts::{CheckError, CheckFacts, bad_target},
};

/// Resolves, connects and closes. The latency is that of the whole check, name resolution included.
pub(super) async fn run(check: &WireTcpCheck, context: &ProbeContext) -> ProbeReport {
    let mut facts = CheckFacts::default();
    let started = Instant::now();
    let result = connect(check, context, &mut facts).await;
    if result.is_ok() {
        facts.duration = Some(started.elapsed());
    }
    facts.report(judge(result.map(drop)))
}

async fn connect(
    check: &WireTcpCheck,
    context: &ProbeContext,
    facts: &mut CheckFacts,
) -> Result<DialedConnection, CheckError> {
    let deadline = context.deadline();
    let host = Host::parse(&check.host).map_err(|error| bad_target(error.to_string()))?;
    if check.port == 0 {
        return Err(bad_target("the port must be 1 to 65535").into());
    }
    let admitted = context.admit(&host, check.port, deadline).await?;
    facts.record_resolution(&admitted);
    let connected = admitted.connect(deadline).await?;
    facts.record_connection(&connected);
    Ok(connected)
}

fn judge(result: Result<(), CheckError>) -> WireOutcome {
    match result {
        Ok(()) => WireOutcome::Passed,
        Err(error) => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parallax_protocol::result::{WireFailure, WireOwnFault};

    #[test]
    fn a_connection_passes_and_a_fault_names_the_side_at_fault() {
        assert_eq!(judge(Ok(())), WireOutcome::Passed);
        assert_eq!(judge(Err(WireFailure::Refused.into())), WireOutcome::Failed(WireFailure::Refused));
        let own = CheckError::Own(WireOwnFault::NoRoute);
        assert_eq!(judge(Err(own)), WireOutcome::Inconclusive(WireOwnFault::NoRoute));
    }
}
