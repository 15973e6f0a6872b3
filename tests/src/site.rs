//! A target in a network namespace of its own, told from outside how to answer.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;

use crate::netns::{NAME_SERVER, TARGET, World};
use crate::process::{Process, binary, command, output};
use crate::targets::Mode;

/// Longest wait for the helper's word.
const LIMIT: Duration = Duration::from_secs(30);

/// The world's web site, on port 80 of [`TARGET`].
#[derive(Debug)]
pub struct Site {
    process: Process,
    told: usize,
    _folder: TempDir,
}

impl Site {
    /// Starts it; it passes until told otherwise.
    pub async fn start(world: &World) -> Self {
        Self::start_in(world.target()).await
    }

    /// Starts an intercepting proxy at the site's address: what agents reach whose way to the site leads to its double.
    pub async fn intercepting(world: &World) -> Self {
        Self::start_in(world.double()).await
    }

    async fn start_in(netns: String) -> Self {
        let folder = TempDir::new().expect("temporary folder");
        let address = SocketAddr::from((TARGET, 80));
        let process = helper(&netns, "http", address, &[], folder.path()).await;
        Self { process, told: 0, _folder: folder }
    }

    /// Its address as a URL.
    pub fn url(&self) -> String {
        format!("http://{TARGET}/")
    }

    /// Tells it how to answer, and waits until it does.
    pub async fn set(&mut self, mode: Mode) {
        self.process.tell(&mode.to_string());
        self.told += 1;
        let process = &self.process;
        crate::eventually::eventually("the site does as told", LIMIT, async || {
            (process.log().matches("now ").count() >= self.told).then_some(())
        })
        .await;
    }
}

/// The world's name server.
#[derive(Debug)]
pub struct Names {
    _process: Process,
    _folder: TempDir,
}

impl Names {
    /// Starts it with its table.
    pub async fn start(world: &World, names: &[(&str, Ipv4Addr)]) -> Self {
        let folder = TempDir::new().expect("temporary folder");
        let table: Vec<String> = names.iter().map(|(name, ip)| format!("{name}={ip}")).collect();
        let address = SocketAddr::from((NAME_SERVER, 53));
        Self {
            _process: helper(&world.target(), "dns", address, &table, folder.path()).await,
            _folder: folder,
        }
    }
}

/// What a plain request from a namespace to the site meets: `answered`, `refused` or `silent`.
pub fn ask(netns: &str) -> String {
    let mut command = command(Some(netns), &binary("parallax-target"));
    command.args(["ask", &SocketAddr::from((TARGET, 80)).to_string()]);
    output(command).unwrap_or_else(|fault| panic!("{fault}")).trim().to_owned()
}

async fn helper(netns: &str, kind: &str, address: SocketAddr, more: &[String], folder: &Path) -> Process {
    let mut command = command(Some(netns), &binary("parallax-target"));
    command.arg(kind).arg(address.to_string()).args(more);
    let mut process = Process::start(&format!("{kind}-target"), command, folder);
    process.says("ready", LIMIT).await;
    process
}
