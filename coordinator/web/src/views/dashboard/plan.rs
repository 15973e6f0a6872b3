//! The account's plan: what it includes, and how much of each limit is used.

use parallax_core::check::CheckKind;
use parallax_core::plan::Plan;
use parallax_service::accounts::meters::AccountMeters;
use parallax_template::template_file;

use super::account::{PLAN, tabs};
use super::frame::Frame;
use super::words;
use crate::views::assets;

/// Share of a limit, in percent, from which on it is drawn as nearly used up.
const NEARLY_FULL: usize = 80;

/// The plan of the account.
#[template_file("dashboard/plan.html")]
#[derive(Debug, Clone)]
pub(crate) struct PlanScreen {
    frame: Frame,
    tabs: Vec<(&'static str, &'static str, bool)>,
    plan: &'static str,
    meters: Vec<Meter>,
    included: String,
    /// The other plans: name and what they include.
    others: Vec<(&'static str, String)>,
}

/// Use of one limit.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Meter {
    name: &'static str,
    used: usize,
    limit: usize,
    /// Consequence of the limit.
    at_limit: &'static str,
}

impl Meter {
    /// Used share in percent, 100 at most.
    fn percent(&self) -> usize {
        (self.used.saturating_mul(100) / self.limit.max(1)).min(100)
    }

    fn class(&self) -> &'static str {
        match self.percent() {
            100 => "down",
            NEARLY_FULL..100 => "slow",
            _ => "up",
        }
    }

    /// The consequence of the limit, once it is near.
    fn warning(&self) -> &'static str {
        if self.percent() >= NEARLY_FULL { self.at_limit } else { "" }
    }
}

impl PlanScreen {
    /// Shows the plan with its use.
    pub(crate) fn new(frame: Frame, meters: &AccountMeters) -> Self {
        let plan = meters.usage.plan;
        let others = Plan::ALL.into_iter().filter(|it| *it != plan);
        Self {
            tabs: tabs(&frame, PLAN),
            plan: title(plan),
            meters: meter_list(meters),
            included: included(meters, plan),
            others: others.map(|it| (title(it), included(meters, it))).collect(),
            frame,
        }
    }
}

const fn title(plan: Plan) -> &'static str {
    match plan {
        Plan::Free => "Free",
        Plan::Hobby => "Hobby",
        Plan::Pro => "Pro",
    }
}

fn meter_list(meters: &AccountMeters) -> Vec<Meter> {
    let AccountMeters { usage, components, incidents, keys, members } = *meters;
    let whole = |limit: u32| usize::try_from(limit).unwrap_or(usize::MAX);
    let meter = |name, used, limit, at_limit| Meter { name, used, limit, at_limit };
    let mut list = vec![
        meter(
            "Monitors",
            usage.monitors,
            whole(usage.limits.monitors(usage.plan)),
            "At the limit, new monitors are refused. Existing ones go on.",
        ),
        meter("Status pages", usage.pages, usage.max_pages, "At the limit, new pages are refused."),
        meter(
            "Incidents and maintenance kept",
            incidents,
            whole(usage.limits.incidents(usage.plan)),
            "At the limit, the oldest closed one goes with each new one.",
        ),
        meter("Members", members.0, members.1, "At the limit, invitations are refused."),
        meter("API keys", keys.0, keys.1, "At the limit, new keys are refused."),
    ];
    if usage.plan.has_components() {
        list.insert(
            1,
            meter(
                "Vendor components",
                components,
                whole(usage.limits.components),
                "At the limit, new ones are refused.",
            ),
        );
    }
    list
}

/// Limits and features of a plan, in a sentence.
fn included(meters: &AccountMeters, plan: Plan) -> String {
    let limits = &meters.usage.limits;
    let interval = limits.interval_ms(plan, CheckKind::Http).map_or(0, i64::from);
    let alerts = if plan.uses_regions() {
        "alerts by mail, webhook and chat, thresholds and regions of your own"
    } else {
        "alerts by mail"
    };
    let components = if plan.has_components() { ", vendor components" } else { "" };
    let monitors = limits.monitors(plan);
    format!("{monitors} monitors, checked every {}, {alerts}{components}.", words::duration(interval))
}

#[cfg(test)]
mod tests {
    use parallax_core::plan::PlanLimits;
    use parallax_service::accounts::usage::PlanUsage;

    use super::*;

    fn meters(plan: Plan, monitors: usize) -> AccountMeters {
        let usage = PlanUsage { plan, limits: PlanLimits::default(), monitors, pages: 1, max_pages: 5 };
        AccountMeters { usage, components: 3, incidents: 7, keys: (1, 100), members: (2, 100) }
    }

    #[test]
    fn a_limit_that_is_nearly_used_up_says_what_follows() {
        for (used, percent, class, has_warning) in [
            (0, 0, "up", false),
            (7, 70, "up", false),
            (8, 80, "slow", true),
            (10, 100, "down", true),
            (14, 100, "down", true),
        ] {
            let meter = &meter_list(&meters(Plan::Free, used))[0];
            assert_eq!((meter.percent(), meter.class()), (percent, class), "{used}");
            assert_eq!(!meter.warning().is_empty(), has_warning, "{used}");
        }
    }

    #[test]
    fn each_plan_is_a_sentence_of_its_own_limits() {
        let meters = meters(Plan::Pro, 1);
        assert_eq!(included(&meters, Plan::Free), "10 monitors, checked every 5 min, alerts by mail.");
        let pro = included(&meters, Plan::Pro);
        assert!(pro.starts_with("500 monitors, checked every 30 s,") && pro.ends_with("vendor components."), "{pro}");
        assert_eq!(meter_list(&meters)[1].name, "Vendor components");
    }
}
