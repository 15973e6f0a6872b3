//! Scripted stories: each line gives a time and an action, followed by the expected outputs.

use std::collections::BTreeMap;

use parallax_core::event::ProbeResponse;
use parallax_core::heartbeat::PingKind;
use parallax_core::machine::{MachineOutput, MonitorMachine};
use parallax_core::observation::{Observation, ProbeOutcome};
use parallax_core::time::{SECOND, Timestamp};
use parallax_core::vantage::{RegionSet, Vantage, VantageNo};

use super::stage::MachineStage;
use super::text::{self, OutputKind, OutputText, StoryResult, VantageNames};

/// Line of a story with its expectations.
pub(crate) struct StoryLine<'a> {
    pub(crate) number: usize,
    pub(crate) words: Vec<&'a str>,
    pub(crate) expected: Vec<&'a str>,
}

/// Unfinished check of a vantage: a probe request, or a pending scheduled round.
#[derive(Clone, Copy)]
enum Open {
    Ask(u32, Timestamp),
    Round(u64, Timestamp),
}

struct Script {
    stage: MachineStage,
    cast: VantageNames,
    open: BTreeMap<VantageNo, Vec<Open>>,
    last: BTreeMap<VantageNo, Observation>,
    rounds: u64,
    now: Timestamp,
}

/// Plays a story whose settings and vantages have been parsed.
pub(crate) fn play(
    stage: MachineStage,
    first: Vec<MachineOutput>,
    cast: VantageNames,
    lines: &[StoryLine<'_>],
) -> StoryResult<()> {
    let now = text::time("00:00")?;
    let mut script = Script { stage, cast, open: BTreeMap::new(), last: BTreeMap::new(), rounds: 0, now };
    let mut first = Some(first);
    for line in lines {
        let at = |error: String| format!("line {}: {error}", line.number);
        let out = script.line(&line.words, &mut first).map_err(at)?;
        script.compare(&out, &line.expected).map_err(at)?;
    }
    Ok(())
}

impl Script {
    fn line(&mut self, words: &[&str], first: &mut Option<Vec<MachineOutput>>) -> StoryResult<Vec<MachineOutput>> {
        let [when, words @ ..] = words else { return Err("a line must begin with a time".to_owned()) };
        let now = text::time(when)?;
        if now < self.now {
            return Err("times must not decrease".to_owned());
        }
        if words == ["the", "monitor", "is", "made"] {
            return Ok(self.record_requests(first.take().unwrap_or_default()));
        }
        if words == ["everybody", "is", "up"] {
            return self.pass_first_rounds(first.take().unwrap_or_default());
        }
        if first.take().is_some_and(|out| out.iter().any(|output| !matches!(output, MachineOutput::Probe(_)))) {
            return Err("the first line must be 'the monitor is made'".to_owned());
        }
        let expects_time = words == ["time", "passes"];
        let timely = self.pass_time(now, expects_time)?;
        self.now = now;
        let out = if expects_time { timely } else { self.act(words)? };
        Ok(self.record_requests(out))
    }

    /// Plays the usual start: the first round of every region passes.
    fn pass_first_rounds(&mut self, first: Vec<MachineOutput>) -> StoryResult<Vec<MachineOutput>> {
        self.record_requests(first);
        self.act(&["the", "asked", "pass"])?;
        self.assert_view(&["up"]).map(|()| Vec::new())
    }

    /// Fires every timeout up to `now`. One that produces output must be expected, at its time.
    fn pass_time(&mut self, now: Timestamp, expects_time: bool) -> StoryResult<Vec<MachineOutput>> {
        let mut idle = 0;
        while let Some(at) = self.stage.next_timeout().filter(|at| *at <= now) {
            let at = at.max(self.now);
            let out = self.stage.step(at, MonitorMachine::handle_timeout);
            self.now = at;
            if !out.is_empty() {
                if expects_time && at == now {
                    return Ok(out);
                }
                let described: Vec<String> =
                    out.iter().filter_map(|output| Some(text::describe(output, &self.cast)?.required)).collect();
                return Err(format!("unexpected at {}: {}", text::clock(at), described.join("; ")));
            }
            idle += 1;
            if idle > 1000 {
                return Err(format!("the timeout at {} makes no progress", text::clock(at)));
            }
        }
        Ok(Vec::new())
    }

    fn act(&mut self, words: &[&str]) -> StoryResult<Vec<MachineOutput>> {
        let now = self.now;
        match words {
            ["the", "coordinator", "stops"] => {
                self.stage.stop(now);
                Ok(Vec::new())
            }
            ["the", "coordinator", "starts"] => {
                self.open.values_mut().for_each(|open| open.retain(|open| matches!(open, Open::Round(..))));
                self.stage.vantages.iter_mut().for_each(|vantage| vantage.connected = false);
                Ok(self.stage.start(now))
            }
            ["everybody", "connects"] => {
                self.stage.vantages.iter_mut().for_each(|vantage| vantage.connected = true);
                Ok(self.stage.mesh_changed(now))
            }
            ["the", "monitor", "is", "paused"] => Ok(self.stage.edit(now, |settings| settings.paused = true)),
            ["the", "monitor", "is", "resumed"] => Ok(self.stage.edit(now, |settings| settings.paused = false)),
            ["a", "window", "begins"] => Ok(self.stage.step(now, |machine, step| machine.handle_window(true, step))),
            ["the", "window", "ends"] => Ok(self.stage.step(now, |machine, step| machine.handle_window(false, step))),
            ["the", "target", "is", "changed"] => Ok(self.stage.edit(now, |settings| settings.revision += 1)),
            ["set", setting, value] => {
                let mut result = Ok(());
                let out = self.stage.edit(now, |settings| result = text::set(settings, setting, value));
                result.map(|()| out)
            }
            ["the", "asked", doing @ ..] => {
                let verb = doing.first().copied().unwrap_or_default();
                let verb = if verb == "pass" { "passes".to_owned() } else { format!("{verb}s") };
                let mut words = vec![verb.as_str()];
                words.extend(doing.iter().skip(1));
                let is_request = |open: &Vec<Open>| matches!(open.first(), Some(Open::Ask(..)));
                let vantages: Vec<VantageNo> =
                    self.open.iter().filter(|(_, open)| is_request(open)).map(|(vantage, _)| *vantage).collect();
                let mut out = Vec::new();
                for vantage in vantages {
                    out.extend(self.report_result(vantage, &words)?);
                }
                Ok(out)
            }
            ["ping"] => Ok(self.stage.ping(PingKind::Succeeded, now)),
            ["ping", "start"] => Ok(self.stage.ping(PingKind::Started, now)),
            ["ping", "log"] => Ok(self.stage.ping(PingKind::Log, now)),
            ["ping", "fail"] => Ok(self.stage.ping(PingKind::Failed(None), now)),
            ["ping", "exit", code] => {
                let code: u8 = code.parse().map_err(|_| format!("'{code}' is not an exit code"))?;
                Ok(self.stage.ping(if code == 0 { PingKind::Succeeded } else { PingKind::Failed(Some(code)) }, now))
            }
            ["it", "is", "seen", how, "from", regions] => self.assert_seen(how, regions).map(|()| Vec::new()),
            ["it", "is", is @ ..] => self.assert_view(is).map(|()| Vec::new()),
            [name, "joins", region, network] => {
                let vantage = self.cast.vantage(&[*name, *region, *network])?;
                self.stage.vantages.push(vantage);
                Ok(self.stage.mesh_changed(now))
            }
            [name, doing @ ..] => {
                let vantage = self.cast.find(name).ok_or_else(|| format!("unknown vantage '{name}'"))?;
                match self.change_vantage(vantage, doing) {
                    Some(()) => Ok(self.stage.mesh_changed(now)),
                    None => self.report_result(vantage, doing),
                }
            }
            [] => Err("an empty line".to_owned()),
        }
    }

    fn change_vantage(&mut self, no: VantageNo, doing: &[&str]) -> Option<()> {
        if doing == ["is", "revoked"] {
            self.stage.vantages.retain(|vantage| vantage.no != no);
            return Some(());
        }
        let vantage = self.stage.vantages.iter_mut().find(|vantage| vantage.no == no)?;
        match doing {
            ["disconnects"] => vantage.connected = false,
            ["connects"] => vantage.connected = true,
            ["is", "quarantined"] => vantage.quarantined = true,
            ["is", "released"] => vantage.quarantined = false,
            ["is", "unfit"] => vantage.unfit = true,
            ["is", "fit"] => vantage.unfit = false,
            _ => return None,
        }
        Some(())
    }

    /// Handles a result of a vantage: the response to its oldest unfinished check, or a scheduled round of its own.
    fn report_result(&mut self, no: VantageNo, doing: &[&str]) -> StoryResult<Vec<MachineOutput>> {
        let now = self.now;
        let vantage =
            *self.stage.vantages.iter().find(|vantage| vantage.no == no).ok_or("the vantage is not enrolled")?;
        if doing == ["again"] {
            let last = self.last.get(&no).cloned().ok_or("the vantage has no earlier result")?;
            return Ok(self.stage.observe(last, now));
        }
        let mut doing = doing.to_vec();
        let mut began = now;
        let mut fresh = false;
        let mut ended = now;
        let mut revision = self.stage.machine.settings().revision;
        let mut number = None;
        while let Some(at) =
            doing.iter().position(|word| ["began", "ended", "round", "scheduled", "outdated"].contains(word))
        {
            let flag = doing.remove(at);
            fresh |= flag != "ended";
            let mut value = || if at < doing.len() { doing.remove(at) } else { "" };
            match flag {
                "began" => began = text::time(value())?,
                "ended" => ended = text::time(value())?,
                "round" => {
                    let after: u64 = value().parse().map_err(|_| "not a round number".to_owned())?;
                    let interval = self.stage.machine.settings().interval_ms;
                    number = Some(text::round(text::time("00:00")?, interval) + after);
                }
                "outdated" => revision -= 1,
                _ => {}
            }
        }
        // A late round ended when it began, unless stated otherwise.
        ended = if began < now && ended == now { began } else { ended };
        if doing == ["is", "silent"] {
            let Some(Open::Ask(ask, _)) = self.take_open(no, false) else {
                return Err("the vantage has no open probe request".to_owned());
            };
            return Ok(self.stage.respond(ask, ProbeResponse::NoResponse, now));
        }
        let waits = doing == ["waits"];
        let outcome = if waits { ProbeOutcome::Pending } else { text::outcome(&doing)? };
        let open = if fresh { None } else { self.take_open(no, waits) };
        let (round, started, ask) = match open {
            Some(Open::Ask(ask, since)) => (None, since, Some(ask)),
            Some(Open::Round(round, since)) => (Some(round), since, None),
            None => {
                let started = if waits { now - 3 * SECOND } else { began };
                let interval = self.stage.machine.settings().interval_ms;
                let round = number.unwrap_or_else(|| text::round(started, interval).max(self.rounds + 1));
                self.rounds = self.rounds.max(round);
                if waits {
                    self.open.entry(no).or_default().push(Open::Round(round, started));
                }
                (Some(round), started, None)
            }
        };
        let Vantage { region, network, .. } = vantage;
        let seen = Observation { revision, region, vantage: no, network, round, started, ended, outcome };
        Ok(match ask {
            Some(ask) => self.stage.respond(ask, ProbeResponse::Observed(seen), now),
            None => {
                self.last.insert(no, seen.clone());
                self.stage.observe(seen, now)
            }
        })
    }

    fn take_open(&mut self, vantage: VantageNo, keep: bool) -> Option<Open> {
        let open = self.open.entry(vantage).or_default();
        let first = *open.first()?;
        if !keep {
            open.remove(0);
        }
        Some(first)
    }

    fn record_requests(&mut self, out: Vec<MachineOutput>) -> Vec<MachineOutput> {
        for output in &out {
            if let MachineOutput::Probe(ask) = output {
                self.open.entry(ask.vantage).or_default().push(Open::Ask(ask.number, self.now));
            }
        }
        out
    }

    fn assert_view(&self, is: &[&str]) -> StoryResult<()> {
        let view = self.stage.machine.view(&self.stage.mesh(), self.now);
        let mut text = view.status.name().to_owned();
        if let Some(since) = view.since {
            text.push_str(&format!(" since {}", text::clock(since)));
        }
        if let Some(from) = view.down_from.or(view.slow_from) {
            text.push_str(&format!(" from {}", from.iter().map(|region| region.name()).collect::<Vec<_>>().join("+")));
        }
        if is.first() == Some(&"disputed") || is == ["undisputed"] {
            let since = view.disputed_since.map(|at| format!("disputed since {}", text::clock(at)));
            let is_so = since.unwrap_or_else(|| "undisputed".to_owned());
            return if is_so == is.join(" ") { Ok(()) } else { Err(format!("the state is '{is_so}'")) };
        }
        if view.unconfirmable {
            text.push_str(" unconfirmable");
        }
        match &view.last_check {
            None => text.push_str(" never checked"),
            Some(last) => {
                let ok = if last.ok { "ok" } else { "failed" };
                text.push_str(&format!(" last {ok} at {}", text::clock(last.at)));
                if let Some(latency) = last.facts.latency_ms {
                    text.push_str(&format!(" in {latency}ms"));
                }
                if let Some(error) = &last.error {
                    text.push_str(&format!(" with {error}"));
                }
            }
        }
        if let Some(expires) = view.expires_at {
            text.push_str(&format!(" expiring {}", text::clock(expires)));
        }
        let wanted = normal(&is.join(" "));
        if text == wanted || text.starts_with(&format!("{wanted} ")) || text.ends_with(&format!(" {wanted}")) {
            return Ok(());
        }
        Err(format!("the state is '{text}'"))
    }

    fn assert_seen(&self, how: &str, regions: &str) -> StoryResult<()> {
        let wanted = if regions == "nowhere" { RegionSet::NONE } else { text::regions(regions)? };
        let view = self.stage.machine.view(&self.stage.mesh(), self.now);
        let seen = match how {
            "up" => view.seen_up,
            "down" => view.seen_down,
            "unconfirmed" => view.unconfirmed_from,
            _ => return Err(format!("unknown state '{how}'")),
        };
        if seen == wanted { Ok(()) } else { Err(format!("it is {how} in {seen:?}")) }
    }

    fn compare(&self, out: &[MachineOutput], expected: &[&str]) -> StoryResult<()> {
        let described: Vec<OutputText> = out.iter().filter_map(|output| text::describe(output, &self.cast)).collect();
        let mut open: Vec<&OutputText> = described.iter().collect();
        let mut listed = vec![OutputKind::Change];
        for wanted in expected {
            if *wanted == "nothing" {
                listed.extend([OutputKind::Ask, OutputKind::Round]);
                continue;
            }
            if *wanted == "asks nobody" {
                listed.push(OutputKind::Ask);
                continue;
            }
            let mut parts = wanted.split(',').map(str::trim);
            let must = normal(parts.next().unwrap_or_default());
            let may: Vec<String> = parts.map(normal).collect();
            let found = open.iter().position(|described| {
                described.required == must && may.iter().all(|part| described.optional.contains(part))
            });
            let Some(found) = found else {
                return Err(format!("missing output '{wanted}'; all: {}", all(&described)));
            };
            listed.push(open.remove(found).kind);
        }
        match open.iter().find(|described| listed.contains(&described.kind)) {
            Some(more) => Err(format!("unexpected output '{}'; all: {}", more.required, all(&described))),
            None => Ok(()),
        }
    }
}

fn all(described: &[OutputText]) -> String {
    if described.is_empty() {
        return "nothing".to_owned();
    }
    let each = |described: &OutputText| {
        let may = if described.kind == OutputKind::Change {
            format!(" ({})", described.optional.join(", "))
        } else {
            String::new()
        };
        format!("\n    -> {}{may}", described.required)
    };
    described.iter().map(each).collect()
}

/// Normalizes the notation of times.
fn normal(text: &str) -> String {
    let word = |word: &str| text::time(word).map_or_else(|_| word.to_owned(), text::clock);
    text.split_whitespace().map(word).collect::<Vec<_>>().join(" ")
}
