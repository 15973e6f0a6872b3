//! Faults that keep this host from checking, logged once for all local agents and not before the welcome.

use std::collections::BTreeSet;
use std::time::Duration;

use parallax_agent::readiness;
use tokio::time::interval;

use crate::members::Roll;

/// Pause between two looks. Agents judge their host every 30 s.
const LOOK: Duration = Duration::from_secs(5);

/// Logs what the local agents say of this host whenever that is something else. Never ends by itself.
pub(super) async fn watch(members: Roll, names: BTreeSet<String>) {
    let mut known = Vec::new();
    let mut look = interval(LOOK);
    loop {
        look.tick().await;
        let connected = members.connected();
        let connected = connected.iter().filter(|it| it.connected_since.is_some());
        let told = connected.map(|it| (it.agent.name.as_str(), it.faults.as_slice()));
        if let Some(faults) = faults(told, &names).filter(|faults| *faults != known) {
            readiness::log(&faults);
            known = faults;
        }
    }
}

/// Faults of any of those agents, each once; none while not all of them are connected.
fn faults<'a>(
    connected: impl Iterator<Item = (&'a str, &'a [String])>,
    names: &BTreeSet<String>,
) -> Option<Vec<String>> {
    let local: Vec<&[String]> =
        connected.filter(|(name, _)| names.contains(*name)).map(|(_, faults)| faults).collect();
    let faults: BTreeSet<&String> = local.iter().copied().flatten().collect();
    (local.len() >= names.len()).then(|| faults.into_iter().cloned().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_twelve_agents_say_of_one_host_is_one_thing() {
        let names: BTreeSet<String> = (0..12).map(|n| format!("local-{n}")).collect();
        let dead = ["the resolver answers nobody".to_owned()];
        let mut told: Vec<(&str, &[String])> = names.iter().map(|name| (name.as_str(), &dead[..])).collect();
        told.push(("fra1", &[]));
        assert_eq!(faults(told.iter().copied(), &names), Some(dead.to_vec()));
        assert_eq!(faults(told.iter().copied().skip(1), &names), None, "one has not connected yet");
        let both = ["no leave to ping".to_owned(), dead[0].clone()];
        told[3].1 = &both;
        assert_eq!(faults(told.iter().copied(), &names), Some(both.to_vec()));
        let well = told.iter().map(|(name, _)| (*name, &[][..]));
        assert_eq!(faults(well, &names), Some(Vec::new()));
    }
}
