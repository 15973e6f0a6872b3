//! Simulated worlds: vantages run their rounds and respond to probe requests themselves, a target is up or not, and
//! alerts must arrive in time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parallax_core::assign::{self, ScheduleShare, ScheduledMonitor};
use parallax_core::check::{Check, TcpCheck};
use parallax_core::event::ProbeResponse;
use parallax_core::machine::{MachineOutput, MonitorMachine};
use parallax_core::observation::{CheckPhase, Failure, Measurements, Observation, ProbeOutcome};
use parallax_core::time::{SECOND, Timestamp};
use parallax_core::vantage::{NetworkNo, Region, Vantage, VantageNo};

use super::script::StoryLine;
use super::stage::MachineStage;
use super::text::{self, OutputKind, StoryResult, VantageNames};

/// Milliseconds that a message takes through the mesh.
const HOP: i64 = 60;
/// Milliseconds of one step of the simulation.
const TICK: i64 = 50;

#[derive(Clone, Copy)]
enum TargetState {
    Up(u32),
    Refuses,
    Hangs,
}

#[derive(Clone, Copy)]
enum Scope {
    Everywhere,
    Region(Region),
    Network(NetworkNo),
    Vantage(VantageNo),
}

enum InTransit {
    Round(Observation),
    Answer(u32, ProbeResponse),
}

struct StoryWorld {
    stage: MachineStage,
    /// Set while the coordinator is away: messages to it wait.
    away: bool,
    now: Timestamp,
    target_states: Vec<(Scope, TargetState)>,
    /// Messages in transit to the coordinator, by time of arrival.
    in_transit: BTreeMap<(Timestamp, u64), InTransit>,
    sent: u64,
    /// Shares of each vantage, as of the last change of the mesh.
    shares: Vec<(Vantage, ScheduleShare)>,
    begun: BTreeSet<(VantageNo, u64)>,
    alerts: Vec<(Timestamp, Timestamp, String)>,
}

/// Plays a world whose settings and vantages have been parsed.
pub(crate) fn play(
    stage: MachineStage,
    first: Vec<MachineOutput>,
    cast: &VantageNames,
    lines: &[StoryLine<'_>],
) -> StoryResult<()> {
    let mut world = StoryWorld::new(stage, text::time("00:00")?);
    world.take(first, cast);
    for (index, line) in lines.iter().enumerate() {
        let at = |error: String| format!("line {}: {error}", line.number);
        let [when, words @ ..] = line.words.as_slice() else { return Err(at("no time".to_owned())) };
        let from = text::time(when).map_err(at)?;
        world.run_until(from, cast);
        if !world.alerts.is_empty() {
            return Err(at(format!("before this line came {:?}", world.describe_alerts())));
        }
        world.turn(words, cast).map_err(at)?;
        let next = lines.get(index + 1).and_then(|line| line.words.first());
        let until = next.map_or(Ok(from), |word| text::time(word)).map_err(at)?;
        world.run_until(until - TICK, cast);
        world.compare(from, &line.expected).map_err(at)?;
    }
    Ok(())
}

/// Delays of the alerts for an outage everywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AlertDelays {
    /// Milliseconds from its start to went-down.
    pub(crate) down: i64,
    /// Milliseconds from its end to recovered.
    pub(crate) up: i64,
}

/// Makes the target refuse or hang for two minutes, starting this many milliseconds after 02:00, and measures the
/// delays of the alerts. There must be one outage, reported as everywhere.
pub(crate) fn measure(
    stage: MachineStage,
    first: Vec<MachineOutput>,
    cast: &VantageNames,
    refuses: bool,
    after: i64,
) -> StoryResult<AlertDelays> {
    let mut world = StoryWorld::new(stage, text::time("00:00")?);
    world.take(first, cast);
    world.assign();
    let begins = text::time("02:00")? + after;
    let ends = begins + 120 * SECOND;
    world.run_until(begins, cast);
    world.alerts.clear();
    world.target_states.push((Scope::Everywhere, if refuses { TargetState::Refuses } else { TargetState::Hangs }));
    world.run_until(ends, cast);
    world.target_states.push((Scope::Everywhere, TargetState::Up(80)));
    world.run_until(ends + 60 * SECOND, cast);
    let described = world.describe_alerts();
    // While regions recover one after the other, the scope shrinks.
    world.alerts.retain(|(at, _, what)| *at < ends || !what.starts_with("scope"));
    match world.alerts.as_slice() {
        [(down, _, went_down), (up, _, recovered)] if went_down == "DOWN went-down" && recovered == "UP recovered" => {
            Ok(AlertDelays { down: down.since(begins), up: up.since(ends) })
        }
        _ => Err(format!("the alerts were {described:?}")),
    }
}

impl StoryWorld {
    fn new(stage: MachineStage, now: Timestamp) -> Self {
        Self {
            stage,
            away: false,
            now,
            target_states: Vec::new(),
            in_transit: BTreeMap::new(),
            sent: 0,
            shares: Vec::new(),
            begun: BTreeSet::new(),
            alerts: Vec::new(),
        }
    }

    fn turn(&mut self, words: &[&str], cast: &VantageNames) -> StoryResult<()> {
        let now = self.now;
        let out = match words {
            ["the", "world", "begins" | "ends"] => Vec::new(),
            ["the", "coordinator", "stops"] => {
                self.stage.stop(now);
                self.away = true;
                Vec::new()
            }
            ["the", "coordinator", "starts"] => {
                self.away = false;
                let was: Vec<bool> = self.stage.vantages.iter().map(|vantage| vantage.connected).collect();
                self.stage.vantages.iter_mut().for_each(|vantage| vantage.connected = false);
                let mut out = self.stage.start(now);
                for (vantage, connected) in self.stage.vantages.iter_mut().zip(was) {
                    vantage.connected = connected;
                }
                out.extend(self.stage.mesh_changed(now));
                out
            }
            ["it", mood @ .., seen] => {
                let mood = match mood {
                    ["refuses"] => TargetState::Refuses,
                    ["hangs"] => TargetState::Hangs,
                    ["is", "well"] => TargetState::Up(80),
                    ["answers", "in", latency] => TargetState::Up(u32::try_from(text::span(latency)?).unwrap_or(0)),
                    _ => return Err(format!("unknown target state '{}'", mood.join(" "))),
                };
                let seen = if *seen == "everywhere" {
                    Scope::Everywhere
                } else if let Ok(region) = text::region(seen) {
                    Scope::Region(region)
                } else if let Some(network) = cast.network(seen) {
                    Scope::Network(network)
                } else {
                    Scope::Vantage(
                        cast.find(seen).ok_or_else(|| format!("unknown region, network or vantage '{seen}'"))?,
                    )
                };
                self.target_states.push((seen, mood));
                Vec::new()
            }
            [name, doing @ ("disconnects" | "connects")] => {
                let no = cast.find(name).ok_or_else(|| format!("unknown vantage '{name}'"))?;
                let connected = *doing == "connects";
                self.stage
                    .vantages
                    .iter_mut()
                    .filter(|vantage| vantage.no == no)
                    .for_each(|vantage| vantage.connected = connected);
                self.stage.mesh_changed(now)
            }
            _ => return Err(format!("unknown action '{}'", words.join(" "))),
        };
        self.take(out, cast);
        self.assign();
        Ok(())
    }

    fn run_until(&mut self, until: Timestamp, cast: &VantageNames) {
        while self.now < until {
            let before = self.now;
            self.now = self.now + TICK;
            self.begin_rounds(before);
            while let Some(entry) = self.in_transit.first_entry().filter(|entry| entry.key().0 <= self.now) {
                if self.away {
                    break;
                }
                let out = match entry.remove() {
                    InTransit::Round(seen) => self.stage.observe(seen, self.now),
                    InTransit::Answer(number, answer) => self.stage.respond(number, answer, self.now),
                };
                self.take(out, cast);
            }
            while self.stage.next_timeout().is_some_and(|at| at <= self.now) {
                let out = self.stage.step(self.now, MonitorMachine::handle_timeout);
                self.take(out, cast);
            }
        }
    }

    /// Sends agents their shares.
    fn assign(&mut self) {
        let mesh = self.stage.mesh();
        let settings = self.stage.machine.settings();
        let scheduled = ScheduledMonitor {
            monitor: settings.monitor,
            account: settings.account,
            slot: 1,
            revision: settings.revision,
            check: Arc::new(Check::Tcp(TcpCheck { host: "example.com".to_owned(), port: 443 })),
            interval_ms: settings.interval_ms,
            pinned: settings.pinned,
        };
        let shares = self.stage.vantages.iter();
        self.shares =
            shares.filter_map(|vantage| Some((*vantage, assign::share(&scheduled, &mesh, vantage.no)?))).collect();
    }

    /// Runs the rounds that are due, whether the coordinator is running or not.
    fn begin_rounds(&mut self, before: Timestamp) {
        for (vantage, share) in self.shares.clone() {
            let (interval, offset) = (i64::from(share.interval_ms), i64::from(share.offset_ms));
            let round = (self.now.as_millis() - offset).div_euclid(interval);
            let due = Timestamp::from_millis(round * interval + offset);
            let round = round.unsigned_abs();
            let is_its_own = round % u64::from(share.every) == u64::from(share.from);
            if due > before && is_its_own && self.begun.insert((vantage.no, round)) {
                self.check(&vantage, Some(round), due, None);
            }
        }
    }

    /// Runs a check at a vantage and sends its results through the mesh.
    fn check(&mut self, vantage: &Vantage, round: Option<u64>, started: Timestamp, ask: Option<u32>) {
        let seen = |outcome, after| Observation {
            revision: 1,
            region: vantage.region,
            vantage: vantage.no,
            network: vantage.network,
            round,
            started,
            ended: started + after,
            outcome,
        };
        let facts = Measurements::default();
        let described = match self.mood(vantage) {
            TargetState::Up(latency) => {
                let facts = Measurements { latency_ms: Some(latency), ..facts };
                vec![seen(ProbeOutcome::Passed(facts), i64::from(latency))]
            }
            TargetState::Refuses => vec![seen(ProbeOutcome::Failed(facts, Failure::Refused), 40)],
            TargetState::Hangs => {
                let timeout = Failure::Timeout(CheckPhase::Connect);
                vec![seen(ProbeOutcome::Pending, 3 * SECOND), seen(ProbeOutcome::Failed(facts, timeout), 10 * SECOND)]
            }
        };
        for seen in described {
            let arrives = seen.ended + HOP;
            let news = ask.map_or_else(
                || InTransit::Round(seen.clone()),
                |number| InTransit::Answer(number, ProbeResponse::Observed(seen.clone())),
            );
            self.send(arrives, news);
        }
    }

    fn mood(&self, vantage: &Vantage) -> TargetState {
        let sees = |seen: &Scope| match seen {
            Scope::Everywhere => true,
            Scope::Region(region) => vantage.region == *region,
            Scope::Network(network) => vantage.network == *network,
            Scope::Vantage(no) => vantage.no == *no,
        };
        self.target_states.iter().rev().find(|(seen, _)| sees(seen)).map_or(TargetState::Up(80), |(_, mood)| *mood)
    }

    fn send(&mut self, at: Timestamp, news: InTransit) {
        self.sent += 1;
        self.in_transit.insert((at, self.sent), news);
    }

    fn take(&mut self, out: Vec<MachineOutput>, cast: &VantageNames) {
        for output in out {
            if let MachineOutput::Probe(ask) = &output {
                match self.stage.vantages.iter().find(|vantage| vantage.no == ask.vantage && vantage.connected).copied()
                {
                    Some(vantage) => self.check(&vantage, None, self.now + HOP, Some(ask.number)),
                    None => self.send(self.now, InTransit::Answer(ask.number, ProbeResponse::NoResponse)),
                }
            }
            if let Some(described) =
                text::describe(&output, cast).filter(|described| described.kind == OutputKind::Change)
            {
                let words: Vec<&str> = described.required.split_whitespace().collect();
                let at = words.iter().position(|word| *word == "since");
                let since = at.and_then(|at| text::time(words.get(at + 1)?).ok()).unwrap_or(self.now);
                let rest: Vec<&str> = match at {
                    Some(at) => words.iter().take(at).chain(words.iter().skip(at + 2)).copied().collect(),
                    None => words,
                };
                self.alerts.push((self.now, since, rest.join(" ")));
            }
        }
    }

    fn describe_alerts(&self) -> Vec<String> {
        let say = |(at, since, what): &(Timestamp, Timestamp, String)| {
            format!("{what} at {} since {}", text::clock(*at), text::clock(*since))
        };
        self.alerts.iter().map(say).collect()
    }

    /// Compares the alerts since `from` with the expected ones: complete, in order, in time, and with the right
    /// start.
    fn compare(&mut self, from: Timestamp, expected: &[&str]) -> StoryResult<()> {
        let described = self.describe_alerts();
        let mut taken = std::mem::take(&mut self.alerts);
        if expected.contains(&"scope changes") {
            taken.retain(|(.., what)| !what.starts_with("scope"));
        }
        let expected: Vec<&&str> =
            expected.iter().filter(|wanted| !["nothing", "scope changes"].contains(wanted)).collect();
        if taken.len() != expected.len() {
            return Err(format!("the alerts were {described:?}"));
        }
        for (wanted, (at, since, what)) in expected.into_iter().zip(taken) {
            let (must, within) = wanted.split_once(" within ").ok_or("an expectation must end with 'within …'")?;
            let until = from + text::span(within)?;
            let (must, earlier) = must.strip_suffix(" since earlier").map_or((must, false), |must| (must, true));
            if must != what || at > until || (since < from - TICK) != earlier || since > until {
                return Err(format!("expected '{wanted}', but the alerts were {described:?}"));
            }
        }
        Ok(())
    }
}
