//! Clock faults: a wall clock that goes forward and back, and a coordinator that is suspended; nothing stays wrong
//! for long.

#![allow(clippy::unwrap_used, dead_code, reason = "the stage is shared; a decode error may panic")]

#[path = "story/scenario.rs"]
mod scenario;
#[path = "story/stage.rs"]
mod stage;

use parallax_core::check::CheckKind;
use parallax_core::event::{AlertKind, EventKind, MonitorStatus};
use parallax_core::heartbeat::PingKind;
use parallax_core::machine::{MachineOutput, MonitorMachine};
use parallax_core::observation::{InconclusiveReason, ProbeOutcome};
use parallax_core::time::{HOUR, MINUTE, SECOND, Timestamp};
use parallax_core::vantage::{Region, RegionSet, VantageNo};
use proptest::prelude::*;
use scenario::{MonitorScenario, START, passed, refused, seen};
use stage::MachineStage;

#[test]
fn an_outage_after_a_recovery_in_the_future_is_a_new_outage() {
    let mut tale = MonitorScenario::new();
    tale.fail_from(START + HOUR);
    tale.round(START + HOUR + 2 * MINUTE, &passed());
    assert_eq!(tale.alerts, [AlertKind::WentDown, AlertKind::Recovered]);
    // The clock was an hour ahead.
    let out = tale.stage.step(START + 5 * MINUTE, MonitorMachine::handle_timeout);
    tale.apply(out, START + 5 * MINUTE, &passed());
    tale.fail_from(START + 6 * MINUTE);
    assert_eq!(tale.alerts.last(), Some(&AlertKind::WentDown));
    assert_eq!(tale.stage.machine.status(), MonitorStatus::Down);
}

#[test]
fn a_first_failure_in_the_future_delays_no_outage() {
    let mut tale = MonitorScenario::new();
    tale.round(START + HOUR, &refused());
    let out = tale.stage.step(START + 5 * MINUTE, MonitorMachine::handle_timeout);
    tale.apply(out, START + 5 * MINUTE, &refused());
    tale.pass_time(START + 5 * MINUTE + 10 * SECOND, &refused());
    assert_eq!(tale.alerts, [AlertKind::WentDown]);
}

#[test]
fn the_status_follows_the_present_again() {
    let mut tale = MonitorScenario::new();
    tale.round(START + HOUR, &passed());
    tale.round(START + 6 * MINUTE, &passed());
    let view = tale.stage.machine.view(&tale.stage.mesh(), START + 6 * MINUTE);
    assert_eq!(view.last_check.unwrap().at, START + 6 * MINUTE);
}

#[test]
fn a_standstill_of_the_coordinator_makes_no_job_late_and_no_region_stale() {
    let mut settings = stage::effective_settings(CheckKind::Heartbeat, 0);
    settings.heartbeat = Some((HOUR, 5 * MINUTE));
    let (mut stage, _) = MachineStage::new(settings, Vec::new(), START);
    stage.ping(PingKind::Succeeded, START);
    let back = START + 3 * HOUR;
    let out = stage.step(back, |machine, step| machine.handle_absence(START + 58 * MINUTE, step));
    let [MachineOutput::Event(what)] = out.as_slice() else { panic!("{out:?}") };
    assert!(matches!(**what, EventKind::DeadlineExtended(moved) if moved.deadline == back + HOUR), "{what:?}");
    assert_eq!((stage.machine.status(), stage.next_timeout()), (MonitorStatus::Up, Some(back + HOUR)));

    let mut tale = MonitorScenario::new();
    let out = tale.stage.step(back, |machine, step| machine.handle_absence(START, step));
    assert_eq!((out, tale.stage.machine.status()), (Vec::new(), MonitorStatus::Up));
    tale.pass_time(back + 5 * MINUTE, &passed());
    assert_eq!(tale.stage.machine.status(), MonitorStatus::Unknown, "stale five minutes after the return");
}

#[test]
fn a_standstill_is_excused_also_where_the_clock_stepped_meanwhile() {
    for jump in [-10 * MINUTE, -3 * SECOND, 3 * SECOND, 10 * MINUTE] {
        let mut settings = stage::effective_settings(CheckKind::Heartbeat, 0);
        settings.heartbeat = Some((HOUR, 5 * MINUTE));
        let (mut stage, _) = MachineStage::new(settings, Vec::new(), START);
        stage.ping(PingKind::Succeeded, START);
        let (since, back) = (START + 58 * MINUTE + jump, START + 3 * HOUR + jump);
        let out = stage.step(back, |machine, step| machine.handle_clock_step(jump, Some(since), step));
        let [MachineOutput::Event(what)] = out.as_slice() else { panic!("{jump} ms: {out:?}") };
        assert!(matches!(**what, EventKind::DeadlineExtended(_)), "{jump} ms: {what:?}");
        assert_eq!((stage.machine.status(), stage.next_timeout()), (MonitorStatus::Up, Some(back + HOUR)), "{jump} ms");

        let mut tale = MonitorScenario::new();
        let out = tale.stage.step(back, |machine, step| machine.handle_clock_step(jump, Some(START + jump), step));
        assert_eq!((out, tale.stage.machine.status()), (Vec::new(), MonitorStatus::Up), "{jump} ms");
    }
}

#[test]
fn a_step_of_the_clock_delays_no_outage_and_no_recovery() {
    for jump in [-60 * SECOND, -10 * SECOND, 10 * SECOND, 10 * MINUTE] {
        // Step immediately, in the middle of a suspicion, or during an outage; the wall clock differs from then on.
        for when in 0..3 {
            let mut tale = MonitorScenario::new();
            let mut wall = START + HOUR;
            tale.round(wall, &passed());
            let step = |tale: &mut MonitorScenario, at: usize, wall: &mut Timestamp, seen: &ProbeOutcome| {
                if at == when {
                    *wall = *wall + jump;
                    let out = tale.stage.step(*wall, |machine, step| machine.handle_clock_step(jump, None, step));
                    tale.apply(out, *wall, seen);
                }
            };
            wall = wall + 50 * SECOND;
            step(&mut tale, 0, &mut wall, &passed());
            wall = wall + 11 * SECOND;
            tale.round(wall, &refused());
            assert_eq!(tale.alerts, [], "{jump} ms, {when}");
            wall = wall + 2 * SECOND;
            step(&mut tale, 1, &mut wall, &refused());
            // The second round begins five seconds after the first, whatever the wall clock does.
            let second = wall + 3 * SECOND;
            tale.pass_time(second, &refused());
            assert_eq!(tale.alerts, [AlertKind::WentDown], "{jump} ms, {when}");
            wall = second + 20 * SECOND;
            step(&mut tale, 2, &mut wall, &refused());
            wall = wall + 40 * SECOND;
            tale.round(wall, &passed());
            assert_eq!(tale.alerts, [AlertKind::WentDown, AlertKind::Recovered], "{jump} ms, {when}");
            // Rounds from before the step neither make it stale nor keep it from going stale.
            let stale = wall + 5 * MINUTE;
            tale.pass_time(stale - SECOND, &passed());
            assert_eq!(tale.stage.machine.status(), MonitorStatus::Up, "{jump} ms, {when}");
            tale.pass_time(stale + SECOND, &passed());
            assert_eq!(tale.stage.machine.status(), MonitorStatus::Unknown, "{jump} ms, {when}");
        }
    }
}

#[test]
fn a_step_of_the_clock_removes_and_adds_no_evidence_of_an_outage() {
    let europe = Some(RegionSet::only(Region::Europe));
    for jump in [-60 * SECOND, -10 * SECOND, 10 * SECOND, 10 * MINUTE] {
        for (sees, is_disputed) in [(true, false), (true, true), (false, false), (false, true)] {
            // Asia passes before the outage, and either responds when it begins or is silent from then on.
            let mut tale = MonitorScenario::of(4);
            let begins = START + HOUR;
            tale.round_of(3, begins - 20 * SECOND, &passed());
            tale.round(begins - 20 * SECOND, &passed());
            tale.asia = Some(Some(passed()));
            if is_disputed {
                tale.round_of(3, begins - SECOND, &refused());
            }
            tale.asia = Some(sees.then(passed));
            tale.round(begins, &refused());
            tale.pass_time(begins + 40 * SECOND, &refused());
            let name = format!("{jump} ms, {sees}, {is_disputed}");
            let from = europe.filter(|_| sees);
            assert_eq!(tale.down_from(begins + 40 * SECOND), from, "{name}");
            let since = tale.stage.machine.view(&tale.stage.mesh(), begins).outage_since;
            let now = tale.step(begins + 41 * SECOND, jump, &refused());
            assert_eq!(tale.down_from(now), from, "{name}, after the step");
            // The clock may step once more.
            let now = tale.step(now + SECOND, -jump, &refused());
            assert_eq!(tale.down_from(now), from, "{name}, after the way back");
            let now = tale.step(now + SECOND, jump, &refused());
            assert_eq!(tale.down_from(now), from, "{name}, after the third");
            // A vantage that passes from now on has seen it up, and the outage keeps the start that was announced.
            tale.round_of(3, now + 20 * SECOND, &passed());
            assert_eq!(tale.down_from(now + 20 * SECOND), europe, "{name}, after a pass");
            let view = tale.stage.machine.view(&tale.stage.mesh(), now);
            assert!(jump < 0 || view.outage_since == since, "{name}");
            assert_eq!(tale.alerts, [AlertKind::WentDown], "{name}");
        }
    }
}

#[test]
fn a_step_of_the_clock_changes_no_duration_of_flapping_or_unjudged_checks() {
    let mut tale = MonitorScenario::new();
    let mut now = START + HOUR;
    for _ in 0..2 {
        tale.fail_from(now);
        tale.round(now + 2 * MINUTE, &passed());
        now = now + 3 * MINUTE;
    }
    let flaps = |tale: &MonitorScenario, now| tale.stage.machine.view(&tale.stage.mesh(), now).flapping.is_some();
    assert!(flaps(&tale, now));
    now = tale.step(now, HOUR, &passed());
    tale.pass_time(now + 28 * MINUTE, &passed());
    assert!(flaps(&tale, now));
    tale.pass_time(now + 30 * MINUTE, &passed());
    assert!(!flaps(&tale, now));

    let mut tale = MonitorScenario::new();
    let mut now = START + HOUR;
    let unreadable = ProbeOutcome::Inconclusive(InconclusiveReason::External("it speaks another language".to_owned()));
    for jump in [0, HOUR, 0] {
        now = tale.step(now + MINUTE, jump, &unreadable);
        let round = Some(now.as_millis().unsigned_abs() / 60_000);
        let out = tale.stage.observe(seen(VantageNo(1), round, now, unreadable.clone()), now);
        let is_report = |output: &MachineOutput| matches!(output, MachineOutput::Event(what) if matches!(**what, EventKind::Unjudged(_)));
        assert!(!out.iter().any(is_report), "two minutes are less than half an hour");
    }
    assert!(tale.stage.machine.view(&tale.stage.mesh(), now).unjudged);
}

#[test]
fn a_deadline_in_the_future_moves_back_with_the_clock() {
    let mut settings = stage::effective_settings(CheckKind::Heartbeat, 0);
    settings.heartbeat = Some((HOUR, 0));
    let (mut stage, _) = MachineStage::new(settings, Vec::new(), START);
    stage.ping(PingKind::Succeeded, START + 24 * HOUR);
    stage.step(START, MonitorMachine::handle_timeout);
    assert_eq!(stage.next_timeout(), Some(START + HOUR));
}

#[test]
fn rounds_count_again_after_a_clock_that_was_ahead_when_the_monitor_was_paused() {
    let mut tale = MonitorScenario::new();
    tale.round(START + 24 * HOUR, &passed());
    tale.stage.edit(START + 24 * HOUR, |settings| settings.paused = true);
    let out = tale.stage.edit(START + MINUTE, |settings| settings.paused = false);
    tale.apply(out, START + MINUTE, &passed());
    let at = START + 10 * MINUTE;
    tale.round(at, &passed());
    assert_eq!(tale.stage.machine.view(&tale.stage.mesh(), at).last_check.unwrap().at, at);
}

/// Ways in which the coordinator can be absent.
#[derive(Debug, Clone, Copy)]
enum Absence {
    Restart,
    Standstill,
    ClockForth,
    ClockBack,
}

fn absences() -> impl Strategy<Value = Vec<(i64, Absence, i64)>> {
    let kinds = prop_oneof![
        Just(Absence::Restart),
        Just(Absence::Standstill),
        Just(Absence::ClockForth),
        Just(Absence::ClockBack),
    ];
    prop::collection::vec((PERIOD * 3..PERIOD * 6, kinds, SECOND..PERIOD), 1..12)
}

/// Milliseconds between two pings; and of grace after them.
const PERIOD: i64 = 10 * MINUTE;
const GRACE: i64 = MINUTE;

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_punctual_job_is_never_down_because_the_coordinator_was_away(
        absences in absences(),
        late in prop::collection::vec(0..GRACE, 8),
    ) {
        let mut settings = stage::effective_settings(CheckKind::Heartbeat, 0);
        settings.heartbeat = Some((PERIOD, GRACE));
        let (mut stage, _) = MachineStage::new(settings, Vec::new(), START);
        let (mut wall_ahead, mut now, mut pings, mut seen) = (0, START, 0_usize, Vec::new());
        let mut next_ping = START;
        for (wait, absence, length) in absences {
            let until = now + wait;
            // Pings and deadlines in order, as the coordinator's clock shows them.
            loop {
                let deadline = stage.next_timeout().map(|at| at - wall_ahead).filter(|at| *at <= until);
                if next_ping <= until && deadline.is_none_or(|at| next_ping < at) {
                    seen.extend(stage.ping(PingKind::Succeeded, next_ping + wall_ahead));
                    pings += 1;
                    next_ping = START + PERIOD * i64::try_from(pings).unwrap() + late[pings % late.len()];
                } else if let Some(at) = deadline {
                    seen.extend(stage.step(at.max(now) + wall_ahead, MonitorMachine::handle_timeout));
                } else {
                    break;
                }
            }
            now = until;
            let then = now + wall_ahead;
            match absence {
                Absence::ClockForth => wall_ahead += length,
                Absence::ClockBack => wall_ahead -= length,
                Absence::Restart | Absence::Standstill => {
                    now = now + length;
                    // Pings are lost meanwhile. A client retries with increasing backoff, up to as long as it has
                    // been retrying already, or for five minutes.
                    let lost = next_ping <= now;
                    while next_ping <= now {
                        pings += 1;
                        next_ping = START + PERIOD * i64::try_from(pings).unwrap() + late[pings % late.len()];
                    }
                    if lost && now + late[pings % late.len()] < next_ping {
                        pings -= 1;
                        next_ping = now + late[pings % late.len()];
                    }
                }
            }
            let wall = now + wall_ahead;
            seen.extend(match absence {
                Absence::Restart => {
                    // The last recorded time of running may be up to five seconds before the end.
                    stage.stop(then - 5 * SECOND);
                    stage.start(wall)
                }
                Absence::Standstill => {
                    stage.step(wall, |machine, step| machine.handle_absence(then, step))
                }
                Absence::ClockForth => stage.step(wall, |machine, step| machine.handle_clock_step(length, None, step)),
                Absence::ClockBack => stage.step(wall, |machine, step| machine.handle_clock_step(-length, None, step)),
            });
            let alerts = seen.iter().filter(|output| {
                matches!(output, MachineOutput::Event(what)
                    if matches!(&**what, EventKind::StatusChanged(change) if change.to == MonitorStatus::Down))
            });
            prop_assert_eq!(alerts.count(), 0, "after {:?} of {} ms", absence, length);
        }
    }
}
