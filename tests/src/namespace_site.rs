//! A check target in a network namespace, controlled by the test.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;

use crate::netns::{NAME_SERVER, TARGET, Topology};
use crate::process::{TestProcess, binary, command, output};
use crate::test_target::TargetMode;

/// Longest wait for the helper process.
const LIMIT: Duration = Duration::from_secs(30);

/// The topology's web site, on port 80 of [`TARGET`].
#[derive(Debug)]
pub struct NamespaceSite {
    process: TestProcess,
    modes_set: usize,
    _folder: TempDir,
}

impl NamespaceSite {
    /// Starts it; it passes until another mode is set.
    pub async fn start(world: &Topology) -> Self {
        Self::start_in(world.target_netns()).await
    }

    /// Starts an intercepting proxy at the site's address, in the decoy's namespace, for agents whose route is cut.
    pub async fn intercepting(world: &Topology) -> Self {
        Self::start_in(world.decoy_netns()).await
    }

    async fn start_in(netns: String) -> Self {
        let folder = TempDir::new().expect("temporary folder");
        let address = SocketAddr::from((TARGET, 80));
        let process = start_helper(&netns, "http", address, &[], folder.path()).await;
        Self { process, modes_set: 0, _folder: folder }
    }

    /// Returns its URL.
    pub fn url(&self) -> String {
        format!("http://{TARGET}/")
    }

    /// Sets the mode, and waits until it is active.
    pub async fn set(&mut self, mode: TargetMode) {
        self.process.write_line(&mode.to_string());
        self.modes_set += 1;
        let process = &self.process;
        crate::eventually::eventually("the site changes its mode", LIMIT, async || {
            (process.log().matches("now ").count() >= self.modes_set).then_some(())
        })
        .await;
    }
}

/// The topology's name server.
#[derive(Debug)]
pub struct NamespaceNameServer {
    _process: TestProcess,
    _folder: TempDir,
}

impl NamespaceNameServer {
    /// Starts it with a table of names.
    pub async fn start(world: &Topology, names: &[(&str, Ipv4Addr)]) -> Self {
        let folder = TempDir::new().expect("temporary folder");
        let table: Vec<String> = names.iter().map(|(name, ip)| format!("{name}={ip}")).collect();
        let address = SocketAddr::from((NAME_SERVER, 53));
        Self {
            _process: start_helper(&world.target_netns(), "dns", address, &table, folder.path()).await,
            _folder: folder,
        }
    }
}

/// Sends a request from a namespace to the site, and returns `answered`, `refused` or `silent`.
pub fn request_site(netns: &str) -> String {
    let mut command = command(Some(netns), &binary("parallax-target"));
    command.args(["ask", &SocketAddr::from((TARGET, 80)).to_string()]);
    output(command).unwrap_or_else(|fault| panic!("{fault}")).trim().to_owned()
}

async fn start_helper(netns: &str, kind: &str, address: SocketAddr, more: &[String], folder: &Path) -> TestProcess {
    let mut command = command(Some(netns), &binary("parallax-target"));
    command.arg(kind).arg(address.to_string()).args(more);
    let mut process = TestProcess::start(&format!("{kind}-target"), command, folder);
    process.wait_for_log("ready", LIMIT).await;
    process
}
