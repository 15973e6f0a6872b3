//! Rows of the things that need attention, with one sentence and one action each.

use chrono_tz::Tz;
use parallax_core::check::{Check, CheckKind};
use parallax_core::condition::{self, Condition};
use parallax_core::destination::{Destination, DisableReason};
use parallax_core::explanation::Explanation;
use parallax_core::incident::Incident;
use parallax_core::page::Page;
use parallax_core::time::{DAY, Timestamp};

use super::monitor::acknowledgement::AcknowledgementView;
use super::state_label::{MonitorStatusInput, StateText, from};
use super::words;
use crate::views::format;

/// A thing that needs attention.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AttentionRow {
    /// CSS class.
    pub class: &'static str,
    /// Icon.
    pub icon: &'static str,
    /// Address of the thing.
    pub href: String,
    /// Its name.
    pub name: String,
    /// Its problem.
    pub state: String,
    /// One sentence: why, or what follows.
    pub sentence: String,
    /// Address and text of the one action.
    pub action: (String, &'static str),
}

impl AttentionRow {
    /// Returns the row of a monitor, if it needs one. Links begin with `root`, the address of its page.
    pub(crate) fn of_monitor(input: MonitorStatusInput<'_>, root: &str, is_operator: bool) -> Option<Self> {
        let MonitorStatusInput { monitor, view, condition, now, .. } = input;
        let state = StateText::of(input);
        let href = format!("{root}/monitors/{}", monitor.id);
        let see_why = (href.clone(), "See why");
        let row = |icon, state: String, sentence, action| Self {
            class: StateText::of(input).class,
            icon,
            name: monitor.name.clone(),
            href: href.clone(),
            state,
            sentence,
            action,
        };
        let is_heartbeat = monitor.check.kind() == CheckKind::Heartbeat;
        if condition::is_never_pinged(monitor, view, now) {
            let age = words::duration(now.since(monitor.created_at));
            let sentence = format!("Created {age} ago. The job has never requested its ping address.");
            return Some(row("heart", "No ping yet".to_owned(), sentence, (href.clone(), "Set up")));
        }
        // Who works on it comes first: it decides whether the reader must act.
        let with_owner = |reason: String| match AcknowledgementView::sentence(monitor, view, now) {
            Some(owner) => format!("{owner} {reason}"),
            None => reason,
        };
        match condition {
            Condition::Down if is_heartbeat => {
                Some(row("heart", state.sentence(), with_owner(heartbeat_reason(input)), see_why))
            }
            Condition::Down => Some(row("down", state.sentence(), with_owner(reason(input)), see_why)),
            Condition::Slow => Some(row("slow", state.sentence(), reason(input), see_why)),
            Condition::Unconfirmed if view.unconfirmed_from.is_empty() => {
                let sentence = "Networks contradict each other. Counted as passed, nothing was sent.".to_owned();
                Some(row("part", format!("{} for {}", state.text, state.why), sentence, see_why))
            }
            Condition::Unconfirmed => {
                let action = if is_operator { ("/app/mesh".to_owned(), "Open mesh") } else { see_why };
                let place = match monitor.pinned_region {
                    Some(_) => format!("Checked {} only, where no second network could", from(view.unconfirmed_from)),
                    None => format!("Fails {}, where no second network could check", from(view.unconfirmed_from)),
                };
                Some(row("part", state.text, format!("{place}. Nothing was sent."), action))
            }
            Condition::Outdated => {
                let was = match &view.last_check {
                    Some(last) if last.ok => "It passed its last check.",
                    Some(_) if view.unjudged => "Its last check could not be judged.",
                    Some(_) => "It failed its last check.",
                    None => "No agent can check it right now.",
                };
                Some(row("none", format!("{} {}", state.text, state.why), was.to_owned(), see_why))
            }
            Condition::NoData | Condition::Maintenance | Condition::Paused | Condition::Up => None,
        }
    }

    /// Returns the row of a certificate or domain that ends soon.
    pub(crate) fn of_end(input: MonitorStatusInput<'_>, root: &str) -> Option<Self> {
        let MonitorStatusInput { monitor, view, now, .. } = input;
        let at = condition::ends_soon(monitor, view, now)?;
        let what = if monitor.check.kind() == CheckKind::Domain { "Domain" } else { "Certificate" };
        let days = usize::try_from(at.since(now).max(0) / DAY).unwrap_or_default();
        let href = format!("{root}/monitors/{}", monitor.id);
        Some(Self {
            class: "slow",
            icon: "cert",
            name: monitor.name.clone(),
            state: format!("{what} ends in {}", words::count(days, "day", "days")),
            sentence: format!("Valid until {}.", words::time(at, now - 2 * DAY).text),
            action: (href.clone(), "Details"),
            href,
        })
    }

    /// Returns the row of a destination, if it gets no alerts.
    pub(crate) fn of_destination(destination: &Destination, root: &str, now: Timestamp) -> Option<Self> {
        let href = format!("{root}/destinations/{}", destination.id);
        let row = |class, state: String, sentence: &str, action| Self {
            class,
            icon: "bell",
            name: destination.name.clone(),
            state,
            sentence: sentence.to_owned(),
            action,
            href: href.clone(),
        };
        let log = (format!("{root}/alerts?destination={}", destination.id), "Open log");
        let open = (href.clone(), "Open");
        if let Some(at) = destination.confirmation_sent_at() {
            let sentence = "Alerts start once its reader confirms.";
            let state = format!("Waiting for confirmation since {}", words::time(at, now).text);
            return Some(row("none", state, sentence, open));
        }
        if !condition::is_failing(destination) {
            return None;
        }
        let Some((at, reason)) = destination.health.disabled else {
            let since = destination.health.failing_since.map(|at| words::time(at, now).text).unwrap_or_default();
            let sentence = "Alerts are tried again; after 5 days it is switched off.";
            return Some(row("slow", format!("Deliveries fail since {since}"), sentence, log));
        };
        let sentence = match reason {
            DisableReason::Gone => "Its receiver answered that it is gone (410).",
            DisableReason::Failing => "Deliveries failed for 5 days.",
            DisableReason::Rejected => "Its mail server refused the address three times.",
            DisableReason::Plan => "The plan does not include its channel.",
            DisableReason::Unconfirmed => "Its mailbox has not been confirmed.",
        };
        Some(row("down", format!("Switched off since {}", words::time(at, now).text), sentence, open))
    }

    /// Returns the row of a page whose domain is claimed and not verified.
    pub(crate) fn of_domain(page: &Page, root: &str) -> Option<Self> {
        let claim = page.domain_claim.as_ref()?;
        let href = format!("{root}/settings/address");
        Some(Self {
            class: "slow",
            icon: "globe",
            name: claim.host.clone(),
            state: "Domain not working yet".to_owned(),
            sentence: claim.problem.as_ref().map_or_else(
                || "Its TXT record has not been found yet.".to_owned(),
                |problem| format!("{}.", format::capitalize(problem.trim_end_matches('.'))),
            ),
            action: (href.clone(), "Details"),
            href,
        })
    }

    /// Returns the row of an incident about which readers were told nothing for an hour.
    pub(crate) fn of_incident(incident: &Incident, root: &str, now: Timestamp) -> Option<Self> {
        let href = format!("{root}/incidents/{}", incident.id);
        condition::needs_update(incident, now).then(|| Self {
            class: "part",
            icon: "flag",
            name: incident.title.clone(),
            state: format!("No update for {}", words::duration(now.since(incident.last_change()))),
            sentence: "Visitors and subscribers wait for news.".to_owned(),
            action: (href.clone(), "Post update"),
            href,
        })
    }

    /// Returns the row of a limit of the plan, if at least 80 % are used.
    /// `action` is the address and text of its button.
    pub(crate) fn of_limit(plan: &str, (used, limit): (usize, usize), action: (String, &'static str)) -> Option<Self> {
        let is_full = used >= limit;
        condition::is_nearly_full(used, limit).then(|| Self {
            class: if is_full { "down" } else { "slow" },
            icon: "pulse",
            name: format!("{used} of {limit} monitors"),
            state: if is_full { "Plan full" } else { "Plan nearly full" }.to_owned(),
            sentence: format!(
                "The {} plan monitors {limit}; vendor components do not count. Delete one, or ask the operator for a \
                 larger plan.",
                format::capitalize(plan)
            ),
            href: action.0.clone(),
            action,
        })
    }
}

/// Sentence of the monitor's own screen, as far as its state alone has it.
fn reason(input: MonitorStatusInput<'_>) -> String {
    let MonitorStatusInput { monitor, view, now, .. } = input;
    format::capitalize(&Explanation::brief(monitor, view, Tz::UTC, now).detail)
}

fn heartbeat_reason(input: MonitorStatusInput<'_>) -> String {
    let MonitorStatusInput { monitor, view, now, .. } = input;
    let Check::Heartbeat(check) = &monitor.check else { return String::new() };
    let period = words::duration(i64::from(check.period_seconds) * 1000);
    let last = view.last_ping_at.map(|at| format!(", last ping {}", words::time(at, now).text)).unwrap_or_default();
    let run = view.last_run_ms.map(|millis| format!(" The run before took {}.", words::elapsed(millis)));
    format!("Expected every {period}{last}.{}", run.unwrap_or_default())
}
