//! The demo's monitors, as a customer would send them.

use parallax_core::check::edit::CheckEdit;
use parallax_core::given::Given;
use parallax_core::monitor::edit::MonitorEdit;
use parallax_core::place::Region;

use super::certificate::HOST;
use super::outside::{COMPONENT, DOMAIN};
use super::targets::Behaviour;

/// What a monitor watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Watched {
    /// A site of ours.
    Site(Behaviour),
    /// An open port of ours.
    Port,
    /// A name's addresses.
    Name,
    /// A host that replies to echoes.
    Host,
    /// A domain's registration.
    Domain,
    /// A vendor's component.
    Vendor,
    /// A host's certificate.
    Certificate,
    /// Pings of a job.
    Pings,
}

/// One monitor of the demo.
#[derive(Debug)]
pub(super) struct Spec {
    /// What it is known by in `demo.json`.
    pub(super) key: &'static str,
    /// Its name on the page.
    pub(super) name: &'static str,
    /// Its group on the page.
    pub(super) group: &'static str,
    /// What it watches.
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

/// A response slower than this is slow, in milliseconds.
const SLOW_MS: i64 = 400;

impl Spec {
    /// The monitor as it is sent to be made.
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
            // Europe alone counts for response times where nothing is said.
            let regions = [Region::Europe, region].map(|region| region.name().to_owned());
            edit.latency_regions = Given::Value(regions.to_vec());
        }
        edit
    }

    /// What is checked.
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
            // What we serve has a port by then.
            (Watched::Site(_) | Watched::Port | Watched::Certificate | Watched::Vendor, None) => {}
        }
        check
    }
}

const fn spec(key: &'static str, name: &'static str, group: &'static str, watched: Watched) -> Spec {
    Spec { key, name, group, watched }
}
