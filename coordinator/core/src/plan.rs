//! Plans: the limits of Free, Hobby and Pro, which an operator may change.

mod limit_error;

pub use limit_error::PlanLimitError;

use serde::{Deserialize, Serialize};

use crate::check::CheckKind;
use crate::destination::ChannelKind;
use crate::text;
use crate::time::{HOUR, SECOND};
use crate::validation::Rule;

/// The three plans.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Plan {
    /// Ten monitors, every five minutes.
    Free,
    /// Fifty monitors, every minute, regions and webhooks.
    Hobby,
    /// Five hundred monitors, every thirty seconds, vendor components too.
    Pro,
}

impl Plan {
    /// Every plan, smallest first.
    pub const ALL: [Self; 3] = [Self::Free, Self::Hobby, Self::Pro];

    /// The name that commands and settings use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Hobby => "hobby",
            Self::Pro => "pro",
        }
    }

    /// The plan of that name.
    ///
    /// # Errors
    /// The rule, which lists the names.
    pub fn read(name: &str) -> Result<Self, Rule> {
        text::one_of(name, &Self::ALL, Self::name)
    }

    /// Returns true if region settings (thresholds and regions of its own, a pinned region) take effect; they
    /// are stored on every plan.
    pub const fn uses_regions(self) -> bool {
        matches!(self, Self::Hobby | Self::Pro)
    }

    /// Returns true if alerts may use that channel: mail on every plan, webhooks and chats from Hobby on.
    pub const fn has_channel(self, kind: ChannelKind) -> bool {
        matches!(kind, ChannelKind::Email) || matches!(self, Self::Hobby | Self::Pro)
    }

    /// Returns true if monitors may follow a vendor's status page.
    pub const fn has_components(self) -> bool {
        matches!(self, Self::Pro)
    }
}

/// Maximum number of pages of an account on the plan.
pub const fn max_pages(plan: Plan) -> usize {
    match plan {
        Plan::Free => 5,
        Plan::Hobby => 25,
        Plan::Pro => 100,
    }
}

/// The limits of each plan. An operator may change the defaults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanLimits {
    /// Monitors of an account, component monitors not counted: Free, Hobby, Pro.
    pub monitors: [u32; 3],
    /// Check interval in milliseconds: Free, Hobby, Pro.
    pub interval_ms: [u32; 3],
    /// Interval of certificate monitors in milliseconds.
    pub certificate_interval_ms: u32,
    /// Interval of domain monitors in milliseconds.
    pub domain_interval_ms: u32,
    /// Interval of component monitors in milliseconds.
    pub component_interval_ms: u32,
    /// Component monitors of an account on Pro.
    pub components: u32,
    /// Incidents and maintenance windows kept for an account: Free, Hobby, Pro.
    pub incidents: [u32; 3],
}

impl Default for PlanLimits {
    fn default() -> Self {
        const fn millis(value: i64) -> u32 {
            value as u32
        }
        Self {
            monitors: [10, 50, 500],
            interval_ms: [millis(300 * SECOND), millis(60 * SECOND), millis(30 * SECOND)],
            certificate_interval_ms: millis(HOUR),
            domain_interval_ms: millis(6 * HOUR),
            component_interval_ms: millis(60 * SECOND),
            components: 200,
            incidents: [1_000, 5_000, 10_000],
        }
    }
}

impl PlanLimits {
    /// Number of monitors that the plan allows, component monitors not counted.
    pub const fn monitors(&self, plan: Plan) -> u32 {
        self.monitors[plan as usize]
    }

    /// Number of incidents and maintenance windows kept for an account on the plan.
    pub const fn incidents(&self, plan: Plan) -> u32 {
        self.incidents[plan as usize]
    }

    /// Milliseconds between two rounds of a monitor in one region; none for heartbeats, which are not probed.
    pub const fn interval_ms(&self, plan: Plan, kind: CheckKind) -> Option<u32> {
        match kind {
            CheckKind::Http | CheckKind::Tcp | CheckKind::Dns | CheckKind::Ping => {
                Some(self.interval_ms[plan as usize])
            }
            CheckKind::Certificate => Some(self.certificate_interval_ms),
            CheckKind::Domain => Some(self.domain_interval_ms),
            CheckKind::Component => Some(self.component_interval_ms),
            CheckKind::Heartbeat => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_need_pro_and_count_apart() {
        let limits = PlanLimits::default();
        for (plan, limit) in [(Plan::Free, 10), (Plan::Hobby, 50), (Plan::Pro, 500)] {
            assert_eq!(limits.monitor_limit(plan, CheckKind::Tcp), Ok(limit));
        }
        assert_eq!(limits.monitor_limit(Plan::Pro, CheckKind::Component), Ok(200));
        let refusal = limits.monitor_limit(Plan::Hobby, CheckKind::Component);
        assert_eq!(refusal, Err(PlanLimitError::ComponentsNeedPro { plan: Plan::Hobby }));
        assert_eq!(Plan::read("hobby"), Ok(Plan::Hobby));
        assert!(Plan::read("gold").is_err());
    }
}
