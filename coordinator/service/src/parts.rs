//! Everything that the services are built on.

use std::sync::Arc;

use parallax_engine::{MachineQuerySender, PingIntake};
use parallax_runtime::clock::Clock;
use parallax_store::Store;
use tokio::sync::mpsc;

use crate::context::ServiceSettings;
use crate::hosts::CertificateProblems;
use crate::hosts::domains::{NoTxtLookup, TxtLookup};
use crate::mesh::{MeshAdministration, NoMesh};
use crate::monitors::pings::disconnected;
use crate::people::ProviderClient;
use crate::statistics::{NoStatistics, Statistics};

/// Everything that the services depend on.
#[derive(Debug)]
pub struct ServiceParts {
    /// The store.
    pub store: Store,
    /// The clock.
    pub clock: Clock,
    /// Channel to the driver, which has the monitors' current states.
    pub queries: MachineQuerySender,
    /// Channel to the driver, which processes pings and checks on request.
    pub pings: PingIntake,
    /// Figures from the history, and the state of the mesh.
    pub statistics: Arc<dyn Statistics>,
    /// The mesh's records, for operators.
    pub mesh: Arc<dyn MeshAdministration>,
    /// Source of TXT records for domain claims.
    pub txt_lookup: Arc<dyn TxtLookup>,
    /// Client for the providers of company sign-in; none if they can't be reached.
    pub provider_client: Option<ProviderClient>,
    /// Source of certificate problems.
    pub certificate_problems: CertificateProblems,
    /// Settings from the operator's configuration.
    pub settings: ServiceSettings,
}

impl ServiceParts {
    /// Parts without a driver, a history, or name servers: monitors' current states are unknown, and pings and look-ups
    /// fail.
    pub fn disconnected(store: Store, clock: Clock, settings: ServiceSettings) -> Self {
        // The receiver is dropped, so queries end at once.
        let (queries, _) = mpsc::channel(1);
        Self {
            store,
            clock,
            queries,
            pings: disconnected(),
            statistics: Arc::new(NoStatistics),
            mesh: Arc::new(NoMesh),
            txt_lookup: Arc::new(NoTxtLookup),
            provider_client: None,
            certificate_problems: CertificateProblems::default(),
            settings,
        }
    }
}
