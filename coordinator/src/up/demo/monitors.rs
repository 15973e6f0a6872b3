//! The demo's monitors, as a customer would create them.

use parallax_core::check::edit::CheckEdit;
use parallax_core::monitor::edit::MonitorEdit;
use parallax_core::patch::PatchField;
use parallax_core::vantage::Region;

use super::certificate::HOST;
use super::external_services::{COMPONENT, DOMAIN};
use super::targets::SiteBehaviour;

/// Target of a monitor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TargetKind {
    /// A site of the demo, with its response time from nearby in milliseconds.
    Site(SiteBehaviour, u32),
    /// An open port of the demo.
    Port,
    /// Addresses of a name.
    Name,
    /// A host that answers ICMP echo requests.
    Host,
    /// Registration of a domain.
    Domain,
    /// A component on a vendor's status page.
    Vendor,
    /// Certificate of a host.
    Certificate,
    /// Pings from a job.
    Pings,
}

/// A monitor of the demo.
#[derive(Debug)]
pub(super) struct MonitorSpec {
    /// Key in `demo.json`.
    pub(super) key: &'static str,
    /// Name on the page.
    pub(super) name: &'static str,
    /// Group on the page.
    pub(super) group: &'static str,
    /// Target.
    pub(super) kind: TargetKind,
}

/// Every monitor, in page order.
pub(super) const SPECS: &[MonitorSpec] = &[
    spec("website", "Website", "Shop", TargetKind::Site(SiteBehaviour::Healthy, 70)),
    spec("checkout", "Checkout", "Shop", TargetKind::Site(SiteBehaviour::Healthy, 110)),
    spec(
        "search",
        "Search (slow from Oceania)",
        "Shop",
        TargetKind::Site(SiteBehaviour::SlowFrom(Region::Oceania), 95),
    ),
    spec(
        "images",
        "Images (down from Asia only)",
        "Delivery",
        TargetKind::Site(SiteBehaviour::DownFrom(Region::Asia), 40),
    ),
    spec("legacy", "Legacy API (down)", "Delivery", TargetKind::Site(SiteBehaviour::Down, 105)),
    spec("stock", "Stock levels (flapping)", "Delivery", TargetKind::Site(SiteBehaviour::Flapping, 90)),
    spec("database", "Database port", "Infrastructure", TargetKind::Port),
    spec("dns", "Name service", "Infrastructure", TargetKind::Name),
    spec("certificate", "Certificate", "Infrastructure", TargetKind::Certificate),
    spec("router", "Router (ping)", "Infrastructure", TargetKind::Host),
    spec("domain", "Domain", "Infrastructure", TargetKind::Domain),
    spec("payments", "Card payments", "Vendors", TargetKind::Vendor),
    spec("backup", "Nightly backup", "Jobs", TargetKind::Pings),
];

/// Threshold of a slow response, in milliseconds.
const SLOW_MS: i64 = 400;

impl TargetKind {
    /// Returns true if the demo serves it at a port of its own.
    pub(super) const fn is_served(self) -> bool {
        match self {
            Self::Site(..) | Self::Port | Self::Certificate | Self::Vendor => true,
            Self::Name | Self::Host | Self::Domain | Self::Pings => false,
        }
    }
}

impl MonitorSpec {
    /// Response time of a site from nearby in milliseconds; none for other targets.
    pub(super) const fn base_ms(&self) -> Option<u32> {
        match self.kind {
            TargetKind::Site(_, base_ms) => Some(base_ms),
            TargetKind::Port
            | TargetKind::Name
            | TargetKind::Host
            | TargetKind::Domain
            | TargetKind::Vendor
            | TargetKind::Certificate
            | TargetKind::Pings => None,
        }
    }

    /// Builds the edit that creates the monitor.
    pub(super) fn edit(&self, port: Option<u16>) -> MonitorEdit {
        let kind = match self.kind {
            TargetKind::Site(..) => "http",
            TargetKind::Port => "tcp",
            TargetKind::Name => "dns",
            TargetKind::Host => "ping",
            TargetKind::Domain => "domain",
            TargetKind::Vendor => "component",
            TargetKind::Certificate => "certificate",
            TargetKind::Pings => "heartbeat",
        };
        let mut edit = MonitorEdit {
            kind: PatchField::Value(kind.to_owned()),
            name: PatchField::Value(self.name.to_owned()),
            group: PatchField::Value(self.group.to_owned()),
            check: self.target(port),
            ..MonitorEdit::default()
        };
        if matches!(self.kind, TargetKind::Site(..)) {
            edit.slow_threshold_ms = PatchField::Value(SLOW_MS);
        }
        if let TargetKind::Site(SiteBehaviour::SlowFrom(region), _) = self.kind {
            // By default, only Europe counts for response times.
            let regions = [Region::Europe, region].map(|region| region.name().to_owned());
            edit.latency_regions = PatchField::Value(regions.to_vec());
        }
        edit
    }

    /// Builds the target's fields.
    pub(super) fn target(&self, port: Option<u16>) -> CheckEdit {
        let mut check = CheckEdit::default();
        match (self.kind, port) {
            (TargetKind::Site(..), Some(port)) => {
                check.url = PatchField::Value(format!("http://127.0.0.1:{port}/"));
            }
            (TargetKind::Port, Some(port)) => {
                check.host = PatchField::Value("127.0.0.1".to_owned());
                check.port = PatchField::Value(port.into());
            }
            (TargetKind::Name, _) => {
                check.host = PatchField::Value(HOST.to_owned());
                check.dns_expect = PatchField::Value("127.0.0.1".to_owned());
            }
            (TargetKind::Certificate, Some(port)) => {
                check.host = PatchField::Value(HOST.to_owned());
                check.port = PatchField::Value(port.into());
            }
            (TargetKind::Host, _) => {
                check.host = PatchField::Value("127.0.0.1".to_owned());
            }
            (TargetKind::Domain, _) => {
                check.host = PatchField::Value(DOMAIN.to_owned());
            }
            (TargetKind::Vendor, Some(port)) => {
                check.vendor_url = PatchField::Value(format!("http://127.0.0.1:{port}/"));
                check.vendor_component = PatchField::Value(COMPONENT.to_owned());
            }
            (TargetKind::Pings, _) => {
                check.period_minutes = PatchField::Value(24 * 60);
                check.grace_minutes = PatchField::Value(60);
            }
            // Served targets always have a port.
            (TargetKind::Site(..) | TargetKind::Port | TargetKind::Certificate | TargetKind::Vendor, None) => {}
        }
        check
    }
}

const fn spec(key: &'static str, name: &'static str, group: &'static str, target: TargetKind) -> MonitorSpec {
    MonitorSpec { key, name, group, kind: target }
}
