//! The tcp probe: opens a connection.

use parallax_dial::{Connected, Host};
use parallax_protocol::{
    check::TcpCheck,
    result::{Outcome, Report},
};
use tokio::time::Instant;

use super::{
    facts::{Facts, Trouble, bad_target},
    net::Net,
};

/// Resolves, connects and closes. The latency is that of the whole check, name resolution included.
pub(super) async fn run(check: &TcpCheck, net: &Net) -> Report {
    let mut facts = Facts::default();
    let started = Instant::now();
    let result = connect(check, net, &mut facts).await;
    if result.is_ok() {
        facts.took = Some(started.elapsed());
    }
    facts.report(judge(result.map(drop)))
}

async fn connect(check: &TcpCheck, net: &Net, facts: &mut Facts) -> Result<Connected, Trouble> {
    let deadline = net.deadline();
    let host = Host::parse(&check.host).map_err(|error| bad_target(error.to_string()))?;
    if check.port == 0 {
        return Err(bad_target("the port must be 1 to 65535").into());
    }
    let admitted = net.admit(&host, check.port, deadline).await?;
    facts.admitted(&admitted);
    let connected = admitted.connect(deadline).await?;
    facts.connected(&connected);
    Ok(connected)
}

fn judge(result: Result<(), Trouble>) -> Outcome {
    match result {
        Ok(()) => Outcome::Passed,
        Err(trouble) => trouble.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parallax_protocol::result::{Failure, OwnFault};

    #[test]
    fn a_connection_passes_and_a_trouble_says_whose_it_is() {
        assert_eq!(judge(Ok(())), Outcome::Passed);
        assert_eq!(judge(Err(Failure::Refused.into())), Outcome::Failed(Failure::Refused));
        let own = Trouble::Own(OwnFault::NoRoute);
        assert_eq!(judge(Err(own)), Outcome::Inconclusive(OwnFault::NoRoute));
    }
}
