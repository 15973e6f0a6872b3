//! Stories of a whole mesh: rounds on several hosts with the outcome of every vantage, and the resulting quarantines.

use std::collections::BTreeSet;

use parallax_core::event::{ProbeReason, RoundReport};
use parallax_core::id::AccountId;
use parallax_core::observation::{ProbeOutcome, RoundOutcome};
use parallax_core::quarantine::{CheckTarget, Quarantine, QuarantineChange};
use parallax_core::time::Timestamp;
use parallax_core::vantage::{Mesh, Vantage, VantageNo};

use super::script::StoryLine;
use super::text::{self, StoryResult, VantageNames};

/// Plays a story whose vantages have been parsed.
pub(crate) fn play(vantages: &[Vantage], cast: &VantageNames, lines: &[StoryLine<'_>]) -> StoryResult<()> {
    let mut quarantine = Quarantine::default();
    let hosts = lines.iter().flat_map(|line| line.words.iter().filter_map(|word| word.split_once('/')));
    let accounts = hosts.map(|(account, _)| account).collect::<BTreeSet<_>>().len().max(1);
    for line in lines {
        let at = |error: String| format!("line {}: {error}", line.number);
        let result = turn(&mut quarantine, (vantages, accounts), cast, &line.words).map_err(at)?;
        if result != line.expected {
            return Err(at(format!("the result is {result:?}")));
        }
        let held: BTreeSet<VantageNo> = quarantine.suspected().quarantined.into_keys().collect();
        if held.len() * 3 > vantages.len() {
            return Err(at("more than a third are quarantined".to_owned()));
        }
    }
    Ok(())
}

fn turn(
    quarantine: &mut Quarantine,
    (vantages, accounts): (&[Vantage], usize),
    cast: &VantageNames,
    words: &[&str],
) -> StoryResult<Vec<String>> {
    let [when, words @ ..] = words else { return Err("a line must begin with a time".to_owned()) };
    let now = text::time(when)?;
    let vantage = |name: &str| cast.find(name).ok_or_else(|| format!("unknown vantage '{name}'"));
    let held = quarantine.suspected().quarantined;
    let laid = vantages.iter().map(|vantage| Vantage { quarantined: held.contains_key(&vantage.no), ..*vantage });
    let mesh = Mesh::new(laid.collect::<Vec<_>>());
    let turns: Vec<(VantageNo, QuarantineChange)> = match words {
        ["time", "passes"] => {
            quarantine.handle_timeout(now).into_iter().map(|vantage| (vantage, QuarantineChange::Released)).collect()
        }
        [name, "agrees"] => shadow(quarantine, vantage(name)?, true, target("", accounts), now),
        [name, "disagrees"] => shadow(quarantine, vantage(name)?, false, target("", accounts), now),
        [name, "disagrees", "on", host] => shadow(quarantine, vantage(name)?, false, target(host, accounts), now),
        [host, seen @ ..] => {
            let mut outcomes = Vec::new();
            for word in seen.join(" ").split(", ") {
                let words: Vec<&str> = word.split_whitespace().collect();
                let [name, doing @ ..] = words.as_slice() else {
                    return Err("a vantage without an outcome".to_owned());
                };
                outcomes.push((vantage(name)?, text::outcome(doing)?));
            }
            quarantine.apply_round(&report(outcomes, now)?, target(host, accounts), &mesh, now)
        }
        [] => return Err("an empty line".to_owned()),
    };
    let name = |no: VantageNo| cast.name(no).to_owned();
    let say = |(vantage, turn): (VantageNo, QuarantineChange)| match turn {
        QuarantineChange::Quarantined(found) => {
            format!("{} is quarantined: {}", name(vantage), found.describe(name))
        }
        QuarantineChange::Spared(found) => format!("{} is spared: {}", name(vantage), found.describe(name)),
        QuarantineChange::Released => format!("{} is released", name(vantage)),
    };
    Ok(turns.into_iter().map(say).collect())
}

/// Target of a host as a story names it: `acme/shop` if it belongs to a named account.
fn target(name: &str, accounts: usize) -> CheckTarget {
    let number = |text: &str| parallax_core::assign::stable_hash(text.as_bytes());
    let account = name.split_once('/').map_or("", |(account, _)| account);
    CheckTarget { host: number(name), account: AccountId::from_u128(number(account).into()), accounts }
}

fn shadow(
    quarantine: &mut Quarantine,
    vantage: VantageNo,
    agrees: bool,
    target: CheckTarget,
    now: Timestamp,
) -> Vec<(VantageNo, QuarantineChange)> {
    quarantine.apply_shadow_round(vantage, agrees, target, now).map(|turn| (vantage, turn)).into_iter().collect()
}

/// Builds the report of a round with these outcomes, as a machine would.
fn report(outcomes: Vec<(VantageNo, ProbeOutcome)>, now: Timestamp) -> StoryResult<RoundReport> {
    let failed = |seen: &Option<(VantageNo, ProbeOutcome)>| matches!(seen, Some((_, ProbeOutcome::Failed(..))));
    let mut outcomes = outcomes.into_iter();
    let mut first = outcomes.next();
    let (mut second, mut third) = (outcomes.next(), outcomes.next());
    let word = if failed(&first) {
        if failed(&third) {
            std::mem::swap(&mut second, &mut third);
        }
        if failed(&second) { RoundOutcome::Failed } else { RoundOutcome::Disputed }
    } else if failed(&second) && failed(&third) {
        (first, second, third) = (second, third, first);
        RoundOutcome::Failed
    } else {
        if failed(&second) {
            std::mem::swap(&mut second, &mut third);
        }
        RoundOutcome::Passed
    };
    let (first, outcome) = first.ok_or("a round without outcomes")?;
    let region = parallax_core::vantage::Region::Europe;
    let (reason, round) = (ProbeReason::Scheduled, Some(1));
    Ok(RoundReport {
        region,
        reason,
        round,
        started: now,
        round_outcome: word,
        first_vantage: first,
        first_outcome: outcome,
        second,
        third: third.map(Box::new),
    })
}
