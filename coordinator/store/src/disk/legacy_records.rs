//! Records of older schemas, read only by the migration.

use parallax_core::id::{AccountId, PageId};
use parallax_core::page::Page;
use parallax_core::time::Timestamp;
use parallax_core::vantage::RegionSet;
use serde::{Deserialize, Serialize};

/// A page up to schema 4.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct PageOfSchema4 {
    id: PageId,
    account: AccountId,
    name: String,
    slug: String,
    custom_domain: Option<String>,
    description: Option<String>,
    support_url: Option<String>,
    timezone: chrono_tz::Tz,
    uptime_target: Option<f64>,
    password: Option<String>,
    private: bool,
    show_deploys: bool,
    show_locations: bool,
    latency_regions: Option<RegionSet>,
    uptime_regions: Option<RegionSet>,
    created_at: Timestamp,
}

impl From<PageOfSchema4> for Page {
    fn from(old: PageOfSchema4) -> Self {
        Self {
            name: old.name,
            custom_domain: old.custom_domain,
            description: old.description,
            support_url: old.support_url,
            timezone: old.timezone,
            uptime_target: old.uptime_target,
            password_hash: old.password,
            private: old.private,
            show_deploys: old.show_deploys,
            show_locations: old.show_locations,
            latency_regions: old.latency_regions,
            uptime_regions: old.uptime_regions,
            ..Self::blank(old.id, old.account, old.slug, old.created_at)
        }
    }
}

#[cfg(test)]
impl From<Page> for PageOfSchema4 {
    fn from(page: Page) -> Self {
        Self {
            id: page.id,
            account: page.account,
            name: page.name,
            slug: page.slug,
            custom_domain: page.custom_domain,
            description: page.description,
            support_url: page.support_url,
            timezone: page.timezone,
            uptime_target: page.uptime_target,
            password: page.password_hash,
            private: page.private,
            show_deploys: page.show_deploys,
            show_locations: page.show_locations,
            latency_regions: page.latency_regions,
            uptime_regions: page.uptime_regions,
            created_at: page.created_at,
        }
    }
}

#[cfg(test)]
mod tests {
    use parallax_core::account::Account;
    use parallax_core::alert_settings::AnnouncedOutages;
    use parallax_core::event::{AlertKind, Event, EventKind, MonitorStatus, StatusChange};
    use parallax_core::incident::Incident;
    use parallax_core::machine::MachineState;
    use serde::Serialize;

    use super::*;
    use crate::samples::{account, at, delivery, event, incident, outages, page, person};

    #[test]
    fn a_page_is_read_from_its_schema_4_bytes() {
        // The sample page, as schema 4 wrote it.
        let hex = include_str!("old/page-of-schema-4.hex").trim();
        let bytes: Vec<u8> =
            (0..hex.len() / 2).map(|at| u8::from_str_radix(&hex[at * 2..at * 2 + 2], 16).unwrap()).collect();
        let (revision, old): (u64, PageOfSchema4) = postcard::from_bytes(&bytes).unwrap();
        assert_eq!((revision, Page::from(old)), (7, page(2, 1, "two")));
    }

    #[test]
    fn an_incident_without_edit_and_planning_times_is_read() {
        let incident = Incident { edited_at: None, planned_at: None, ..incident(3, 1, 5, true) };
        let mut bytes = postcard::to_allocvec(&(7u64, &incident)).unwrap();
        // An older record ends before the edit time, and a still older one before the planning time; the missing
        // fields are read as `None`.
        for _ in ["planned_at", "edited_at"] {
            assert_eq!(bytes.pop(), Some(0));
            assert_eq!(postcard::from_bytes::<(u64, Incident)>(&bytes).unwrap(), (7, incident.clone()));
        }
    }

    #[test]
    fn an_account_without_the_time_of_its_plan_is_read() {
        let account = account(3);
        let mut bytes = postcard::to_allocvec(&(7u64, &account)).unwrap();
        assert_eq!(bytes.pop(), Some(0), "its first plan");
        assert_eq!(postcard::from_bytes::<(u64, Account)>(&bytes).unwrap(), (7, account));
    }

    #[test]
    fn announced_outages_without_widest_scope_and_flapping_are_read() {
        let record = AnnouncedOutages { widest_scope: Default::default(), flapping: Default::default(), ..outages(3) };
        let mut bytes = postcard::to_allocvec(&(7u64, &record)).unwrap();
        for missing_field in ["what flaps", "the widest scope"] {
            assert_eq!(bytes.pop(), Some(0), "nothing of {missing_field}");
            assert_eq!(postcard::from_bytes::<(u64, AnnouncedOutages)>(&bytes).unwrap(), (7, record.clone()));
        }
    }

    #[test]
    fn events_machines_and_deliveries_without_flapping_are_read() {
        let change = StatusChange {
            from: MonitorStatus::Up,
            to: MonitorStatus::Down,
            alert: Some(AlertKind::WentDown),
            since: at(1),
            down_since: Some(at(1)),
            reason: None,
            down_from: None,
            latency_ms: None,
            threshold_ms: None,
            duration_ms: None,
            evidence: Vec::new(),
            flapping: None,
        };
        assert_read_without_last_field(&Event { kind: EventKind::StatusChanged(change), ..event(1, Some(1)) }, 1);
        // Its last field is one byte for each of the six regions.
        assert_read_without_last_field(&MachineState::default(), 6);
        assert_read_without_last_field(&delivery(1, Some(1), None), 1);
    }

    #[test]
    fn persons_and_accounts_without_a_second_factor_or_passkeys_are_read() {
        // None active, none pending, and no passkeys, which came later.
        assert_read_without_last_field(&person(1, 1), 3);
        assert_read_without_last_field(&person(1, 1), 1);
        assert_read_without_last_field(&account(1), 1);
    }

    /// Asserts that a record without its last field (empty, `last_field` bytes long) is still readable.
    fn assert_read_without_last_field<T: Serialize + serde::de::DeserializeOwned + PartialEq + std::fmt::Debug>(
        record: &T,
        last_field: usize,
    ) {
        let mut bytes = postcard::to_allocvec(&(7u64, record)).unwrap();
        assert_eq!(bytes.split_off(bytes.len() - last_field), vec![0; last_field]);
        let (revision, read) = postcard::from_bytes::<(u64, T)>(&bytes).unwrap();
        assert_eq!((revision, &read), (7, record));
    }
}
