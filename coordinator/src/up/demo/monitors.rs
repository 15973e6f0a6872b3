//! The demo's monitors, as a customer would create them.

use parallax_core::check::edit::CheckEdit;
use parallax_core::given::Given;
use parallax_core::monitor::edit::MonitorEdit;
use parallax_core::place::Region;

use super::certificate::HOST;
use super::outside::{COMPONENT, DOMAIN};
use super::targets::Behaviour;

/// Target of a monitor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Watched {
    /// A site of the demo.
    Site(Behaviour),
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
pub(super) struct Spec {
    /// Key in `demo.json`.
    pub(super) key: &'static str,
    /// Name on the page.
    pub(super) name: &'static str,
    /// Group on the page.
    pub(super) group: &'static str,
    /// Target.
    pub(super) watched: Watched,
}

/// Every monitor, in page order.
pub(super) const SPECS: &[Spec] = &[
    spec("website", "Website", "Shop", Watched::Site(Behaviour::Well)),
    spec("checkout", "Checkout", "Shop", Watched::Site(Behaviour::Well)),
    spec("search", "Search (slow from Oceania)", "Shop", Watched::Site(Behaviour::SlowFrom(Region::Oceania))),
    spec(
        "images",
        "Images (down from Asia only)",
        "Delivery",
        Watched::Site(Behaviour::DownFrom(Region::Asia)),
    ),
    spec("legacy", "Legacy API (down)", "Delivery", Watched::Site(Behaviour::Down)),
    spec("stock", "Stock levels (flapping)", "Delivery", Watched::Site(Behaviour::Flapping)),
    spec("database", "Database port", "Infrastructure", Watched::Port),
    spec("dns", "Name service", "Infrastructure", Watched::Name),
    spec("certificate", "Certificate", "Infrastructure", Watched::Certificate),
    spec("router", "Router (ping)", "Infrastructure", Watched::Host),
    spec("domain", "Domain", "Infrastructure", Watched::Domain),
    spec("payments", "Card payments", "Vendors", Watched::Vendor),
    spec("backup", "Nightly backup", "Jobs", Watched::Pings),
];

/// Threshold of a slow response, in milliseconds.
const SLOW_MS: i64 = 400;

impl Spec {
    /// Builds the edit that creates the monitor.
    pub(super) fn edit(&self, port: Option<u16>) -> MonitorEdit {
        let kind = match self.watched {
            Watched::Site(_) => "http",
            Watched::Port => "tcp",
            Watched::Name => "dns",
            Watched::Host => "ping",
            Watched::Domain => "domain",
            Watched::Vendor => "component",
            Watched::Certificate => "certificate",
            Watched::Pings => "heartbeat",
        };
        let mut edit = MonitorEdit {
            kind: Given::Value(kind.to_owned()),
            name: Given::Value(self.name.to_owned()),
            group: Given::Value(self.group.to_owned()),
            check: self.target(port),
            ..MonitorEdit::default()
        };
        if matches!(self.watched, Watched::Site(_)) {
            edit.slow_threshold_ms = Given::Value(SLOW_MS);
        }
        if let Watched::Site(Behaviour::SlowFrom(region)) = self.watched {
            // By default, only Europe counts for response times.
            let regions = [Region::Europe, region].map(|region| region.name().to_owned());
            edit.latency_regions = Given::Value(regions.to_vec());
        }
        edit
    }

    /// Builds the target's fields.
    pub(super) fn target(&self, port: Option<u16>) -> CheckEdit {
        let mut check = CheckEdit::default();
        match (self.watched, port) {
            (Watched::Site(_), Some(port)) => {
                check.url = Given::Value(format!("http://127.0.0.1:{port}/"));
            }
            (Watched::Port, Some(port)) => {
                check.host = Given::Value("127.0.0.1".to_owned());
                check.port = Given::Value(port.into());
            }
            (Watched::Name, _) => {
                check.host = Given::Value(HOST.to_owned());
                check.dns_expect = Given::Value("127.0.0.1".to_owned());
            }
            (Watched::Certificate, Some(port)) => {
                check.host = Given::Value(HOST.to_owned());
                check.port = Given::Value(port.into());
            }
            (Watched::Host, _) => {
                check.host = Given::Value("127.0.0.1".to_owned());
            }
            (Watched::Domain, _) => {
                check.host = Given::Value(DOMAIN.to_owned());
            }
            (Watched::Vendor, Some(port)) => {
                check.vendor_url = Given::Value(format!("http://127.0.0.1:{port}/"));
                check.vendor_component = Given::Value(COMPONENT.to_owned());
            }
            (Watched::Pings, _) => {
                check.period_minutes = Given::Value(24 * 60);
                check.grace_minutes = Given::Value(60);
            }
            // Served targets always have a port.
            (Watched::Site(_) | Watched::Port | Watched::Certificate | Watched::Vendor, None) => {}
        }
        check
    }
}

const fn spec(key: &'static str, name: &'static str, group: &'static str, watched: Watched) -> Spec {
    Spec { key, name, group, watched }
}
