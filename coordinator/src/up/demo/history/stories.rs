//! Texts of the simulated incidents, as the demo's owner wrote them.

use parallax_core::incident::{Impact, IncidentStatus};

/// Updates that people wrote about an outage or a slow period.
#[derive(Debug)]
pub(super) struct IncidentStory {
    /// Key of the outage or slow period.
    pub(super) key: &'static str,
    pub(super) title: &'static str,
    pub(super) impact: Impact,
    /// Minutes after the start at which the incident was opened.
    pub(super) opened_after: i64,
    pub(super) opening: &'static str,
    pub(super) updates: &'static [StoryUpdate],
    pub(super) postmortem: Option<&'static str>,
}

/// An update.
#[derive(Debug)]
pub(super) struct StoryUpdate {
    /// Minutes after the start.
    pub(super) after: i64,
    pub(super) status: IncidentStatus,
    pub(super) text: &'static str,
}

const fn update(after: i64, status: IncidentStatus, text: &'static str) -> StoryUpdate {
    StoryUpdate { after, status, text }
}

/// Every story, oldest first.
pub(super) const STORIES: &[IncidentStory] = &[
    IncidentStory {
        key: "connections",
        title: "Website and checkout unavailable",
        impact: Impact::Major,
        opened_after: 3,
        opening: "The website and the checkout answer with errors from everywhere. We are looking into it.",
        updates: &[
            update(
                14,
                IncidentStatus::Identified,
                "Version 4.9.0 opens more database connections than the database allows. We are rolling it back.",
            ),
            update(36, IncidentStatus::Monitoring, "Version 4.9.1 is out, and orders are coming in again."),
            update(
                58,
                IncidentStatus::Resolved,
                "The website and the checkout have been stable for 20 minutes. Orders placed before the outage are safe.",
            ),
        ],
        postmortem: Some(
            "## Summary\n\nFor 40 minutes the website and the checkout answered with status 503. About 310 orders \
             could not be placed.\n\n## Cause\n\nVersion 4.9.0 shows recommendations on every page. Each page opened a \
             database connection of its own for them, and the limit of 200 connections was reached within 15 \
             minutes.\n\n## What we changed\n\n- Recommendations share one pool of 20 connections.\n- A page is shown \
             without recommendations if they take longer than 200 ms.\n- We are alerted at 70 % of the limit.",
        ),
    },
    IncidentStory {
        key: "legacy",
        title: "Legacy API refuses connections",
        impact: Impact::Partial,
        opened_after: 6,
        opening: "The legacy API refuses connections. The current API is not affected.",
        updates: &[update(
            28,
            IncidentStatus::Resolved,
            "The host of the legacy API had run out of disk space. It was enlarged, and the API answers again.",
        )],
        postmortem: None,
    },
    IncidentStory {
        key: "images",
        title: "Images don't load in Asia",
        impact: Impact::Partial,
        opened_after: 4,
        opening: "Images time out for visitors in Asia. Other regions are not affected.",
        updates: &[
            update(
                11,
                IncidentStatus::Identified,
                "Our provider in Singapore has a fault in its network. We are serving Asia from Frankfurt meanwhile.",
            ),
            update(
                25,
                IncidentStatus::Resolved,
                "Images load again. Our provider has confirmed that the fault is repaired.",
            ),
        ],
        postmortem: None,
    },
    IncidentStory {
        key: "oceania",
        title: "Search is slow in Oceania",
        impact: Impact::Degraded,
        opened_after: 22,
        opening: "Searches take about 0.7 seconds from Oceania, more than twice as long as usual.",
        updates: &[
            update(
                75,
                IncidentStatus::Identified,
                "Traffic from Oceania takes a detour because of a damaged sea cable. Our provider is adding capacity.",
            ),
            update(245, IncidentStatus::Resolved, "Traffic takes its usual way again, and searches are fast."),
        ],
        postmortem: None,
    },
    IncidentStory {
        key: "checkout",
        title: "Checkout fails",
        impact: Impact::Major,
        opened_after: 2,
        opening: "The checkout answers with errors. Carts are kept.",
        updates: &[
            update(
                9,
                IncidentStatus::Identified,
                "The new checkout is missing a table. We are rolling back to 4.12.0.",
            ),
            update(21, IncidentStatus::Resolved, "The previous checkout is back, and orders are coming in."),
        ],
        postmortem: Some(
            "## Summary\n\nFor 15 minutes no order could be placed.\n\n## Cause\n\nVersion 4.13.0 was deployed before \
             the migration that creates its tables had run.\n\n## What we changed\n\n- A deploy waits until its \
             migrations have run.\n- The smoke test places an order.",
        ),
    },
];
