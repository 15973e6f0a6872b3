//! An installation under test: a coordinator, its agents and their data, all in one temporary folder.

use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use tempfile::TempDir;

use crate::api_client::ApiClient;
use crate::eventually::eventually;
use crate::fake_clock::FakeClock;
use crate::free_ports::replace_zero_ports;
use crate::process::{TestProcess, binary, command, output};

/// Longest start of a coordinator.
const START: Duration = Duration::from_secs(90);
/// Longest wait for an agent to connect.
const WELCOME: Duration = Duration::from_secs(60);

/// Contents of the ready file.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadyFile {
    /// Base URL of the HTTP server.
    pub base_url: String,
    /// Write key created on the first start.
    pub api_key: Option<String>,
    /// Page created on the first start.
    pub page_id: Option<String>,
    /// Public URL of that page.
    pub page_url: Option<String>,
    /// UDP address that agents connect to.
    pub mesh: SocketAddr,
    /// Process id of the coordinator.
    pub pid: u32,
}

/// A running coordinator and its folder.
#[derive(Debug)]
pub struct CoordinatorProcess {
    /// The process. Declared before the folder, so that it ends before the folder is deleted.
    pub process: TestProcess,
    /// Its ready file.
    pub ready: ReadyFile,
    binary: PathBuf,
    user: Option<u32>,
    descriptors: Option<u32>,
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
    starts: u32,
    folder: TempDir,
}

/// A coordinator that exited instead of serving.
#[derive(Debug)]
pub struct StartFailure {
    /// Exit status.
    pub code: Option<i32>,
    /// Output of this start.
    pub output: String,
}

impl CoordinatorProcess {
    /// Starts `parallax serve` with its mesh port at `mesh` and the settings `config`, in this namespace.
    pub async fn serve(mesh: SocketAddr, config: &str) -> Self {
        Self::serve_in(TempDir::new().expect("temporary folder"), mesh, config).await
    }

    /// As [`CoordinatorProcess::serve`], in a folder that may contain `data` already.
    pub async fn serve_in(folder: TempDir, mesh: SocketAddr, config: &str) -> Self {
        let file = write_config(&folder, config);
        let mesh = mesh.to_string();
        Self::start(folder, &["serve", "--config", &file, "--mesh-listen", &mesh]).await
    }

    /// As [`CoordinatorProcess::serve`] on loopback, limited to `most` open descriptors.
    pub async fn serve_with_descriptors(most: u32, config: &str) -> Self {
        let folder = TempDir::new().expect("temporary folder");
        let file = write_config(&folder, config);
        let arguments = ["serve", "--config", &file, "--mesh-listen", "127.0.0.1:0"];
        Self::start_with(folder, &arguments, Some(most)).await
    }

    /// As [`CoordinatorProcess::serve`] on loopback, with plain HTTP at a known address.
    pub async fn serve_at(http: SocketAddr, config: &str) -> Self {
        let folder = TempDir::new().expect("temporary folder");
        let file = write_config(&folder, config);
        let arguments = ["serve", "--config", &file, "--mesh-listen", "127.0.0.1:0", "--listen", &http.to_string()];
        Self::start_with(folder, &arguments, None).await
    }

    /// Starts `parallax up` with further arguments, such as `--demo`.
    pub async fn up(arguments: &[&str]) -> Self {
        let folder = TempDir::new().expect("temporary folder");
        let arguments = [&["up", "--mesh-listen", "127.0.0.1:0"], arguments].concat();
        Self::start(folder, &arguments).await
    }

    async fn start(folder: TempDir, arguments: &[&str]) -> Self {
        Self::start_with(folder, arguments, None).await
    }

    async fn start_with(folder: TempDir, arguments: &[&str], descriptors: Option<u32>) -> Self {
        let data = folder.path().join("data").to_string_lossy().into_owned();
        let mut arguments: Vec<String> = arguments.iter().map(|&argument| argument.to_owned()).collect();
        arguments.extend(["--data".to_owned(), data]);
        if !arguments.iter().any(|argument| argument == "--listen") {
            arguments.extend(["--listen", "127.0.0.1:0"].map(str::to_owned));
        }
        replace_zero_ports(&mut arguments);
        let binary = binary("parallax");
        let environment = Vec::new();
        let launching =
            Launch { folder: folder.path(), binary: &binary, user: None, descriptors, environment: &[], start: 0 };
        let (process, ready) =
            launch(launching, &arguments).await.unwrap_or_else(|refusal| panic!("it does not start: {refusal:?}"));
        Self { process, ready, binary, user: None, descriptors, arguments, environment, starts: 1, folder }
    }

    /// Restarts it on the same data and ports, after it was killed or stopped.
    pub async fn restart(&mut self) {
        self.try_restart().await.unwrap_or_else(|refusal| panic!("it does not start again: {refusal:?}"));
    }

    /// As [`CoordinatorProcess::restart`]; returns an error if it exits instead of serving.
    pub async fn try_restart(&mut self) -> Result<(), StartFailure> {
        assert!(!self.process.is_running(), "it is stopped before it is started again");
        // With TLS the plain HTTP address differs from the base URL, and was given by the test.
        let http = self.ready.base_url.strip_prefix("http://").map(|it| it.trim_end_matches('/').to_owned());
        let ports = http.map(|http| ("--listen", http));
        for (option, value) in ports.into_iter().chain([("--mesh-listen", self.ready.mesh.to_string())]) {
            let at = self.arguments.iter().position(|argument| argument == option).expect("option was given");
            self.arguments[at + 1] = value;
        }
        let (start, user, descriptors) = (self.starts, self.user, self.descriptors);
        self.starts += 1;
        let (folder, binary, environment) = (self.folder.path(), &self.binary, &self.environment);
        let launching = Launch { folder, binary, user, descriptors, environment, start };
        (self.process, self.ready) = launch(launching, &self.arguments).await?;
        Ok(())
    }

    /// Sets an environment variable from the next start on.
    pub fn set_variable(&mut self, name: &str, value: &str) {
        self.environment.push((name.to_owned(), value.to_owned()));
    }

    /// Makes it run as the given user from the next start on, and changes the owner of its files. Needs root.
    pub fn run_as(&mut self, user: u32) {
        // The build folder may be inaccessible to that user.
        let own = self.folder.path().join("parallax");
        std::fs::copy(&self.binary, &own).expect("the binary can be copied");
        self.binary = own;
        self.user = Some(user);
        let mut chown = Command::new("chown");
        chown.args(["-R", &user.to_string()]).arg(self.folder.path());
        output(chown).unwrap_or_else(|fault| panic!("{fault}"));
    }

    /// Returns its data directory.
    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Returns an API client without a key.
    pub fn api(&self) -> ApiClient {
        ApiClient::new(&self.ready.base_url, None)
    }

    /// Runs an operator command, such as `page create`, and returns its JSON output.
    pub fn run_command(&self, words: &[&str]) -> Result<Value, String> {
        let mut command = Command::new(binary("parallax"));
        command.args(words).arg("--data").arg(self.data()).arg("--json");
        let printed = output(command)?;
        serde_json::from_str(&printed).map_err(|error| format!("{words:?} printed no JSON: {error}: {printed}"))
    }

    /// Creates an account on a plan, with a page and a write key.
    pub fn create_account(&self, plan: &str) -> TestAccount {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        self.create_account_of(&format!("owner{number}@example.com"), plan)
    }

    /// As [`CoordinatorProcess::create_account`], of an owner with that email address, whose local part names the page.
    pub fn create_account_of(&self, email: &str, plan: &str) -> TestAccount {
        let slug = format!("page-of-{}", email.split('@').next().unwrap_or_default());
        let made = |words: &[&str]| self.run_command(words).unwrap_or_else(|fault| panic!("{fault}"));
        let account = text(&made(&["account", "create", "--email", email, "--plan", plan]), "id");
        let page =
            text(&made(&["page", "create", "--account", &account, "--name", "Page under test", "--slug", &slug]), "id");
        let key = self.create_key(&account, "write");
        let client = self.api().with_key(Some(&key));
        TestAccount { account, page, slug, key, client }
    }

    /// Creates a key of an account; `access` is `read` or `write`.
    pub fn create_key(&self, account: &str, access: &str) -> String {
        let made =
            self.run_command(&["key", "create", "--account", account, "--name", "under test", "--access", access]);
        text(&made.unwrap_or_else(|fault| panic!("{fault}")), "key")
    }

    /// Invites an agent and returns its token.
    pub fn invite(&self, name: &str, region: &str, network: &str, more: &[&str]) -> Result<String, String> {
        let words = [&["agent", "invite", "--name", name, "--region", region, "--network", network], more].concat();
        Ok(text(&self.run_command(&words)?, "token"))
    }

    /// Invites an agent, has it join, and starts it, in a namespace or, with private targets allowed, on this host.
    pub fn start_agent(&self, name: &str, region: &str, network: &str, netns: Option<&str>) -> AgentProcess {
        let token = self.invite(name, region, network, &[]).unwrap_or_else(|fault| panic!("{fault}"));
        let mut agent = AgentProcess::new(name, self.folder.path(), netns);
        agent.join(self.ready.mesh, &token).unwrap_or_else(|fault| panic!("{name} does not join: {fault}"));
        agent.run();
        agent
    }

    /// As [`CoordinatorProcess::start_agent`], permanently connecting through the address `line`.
    pub fn start_agent_over(&self, line: SocketAddr, name: &str, region: &str, network: &str) -> AgentProcess {
        let token = self.invite(name, region, network, &[]).unwrap_or_else(|fault| panic!("{fault}"));
        let mut agent = AgentProcess::new(name, self.folder.path(), None);
        agent.join(line, &token).unwrap_or_else(|fault| panic!("{name} does not join: {fault}"));
        agent.run();
        agent
    }

    /// Returns the mesh's agents as the operator sees them.
    pub fn members(&self) -> Vec<Value> {
        let listed = self.run_command(&["agent", "list"]).unwrap_or_else(|fault| panic!("{fault}"));
        let list = listed.as_array().or_else(|| listed["agents"].as_array());
        list.cloned().unwrap_or_else(|| panic!("agents are a list: {listed}"))
    }

    /// Waits until `count` agents are connected.
    pub async fn wait_for_agents(&self, count: usize) {
        let is = |member: &&Value| member["connected"] == true || member["status"] == "connected";
        eventually(&format!("{count} agents are connected"), WELCOME, async || {
            (self.members().iter().filter(is).count() >= count).then_some(())
        })
        .await;
    }
}

/// An account with one page and a write key.
#[derive(Debug)]
pub struct TestAccount {
    /// Its id.
    pub account: String,
    /// Id of its page.
    pub page: String,
    /// Slug of its page.
    pub slug: String,
    /// The write key itself.
    pub key: String,
    /// The API with that key.
    pub client: ApiClient,
}

/// An agent: its folder, and its process while it runs.
#[derive(Debug)]
pub struct AgentProcess {
    name: String,
    folder: PathBuf,
    netns: Option<String>,
    clock: Option<FakeClock>,
    process: Option<TestProcess>,
}

impl AgentProcess {
    /// Returns an agent that has neither joined nor run, with its data in `folder`.
    pub fn new(name: &str, folder: &Path, netns: Option<&str>) -> Self {
        Self {
            name: name.to_owned(),
            folder: folder.to_path_buf(),
            netns: netns.map(str::to_owned),
            clock: None,
            process: None,
        }
    }

    /// Gives it a wrong wall clock from the next command on.
    pub fn set_clock(&mut self, clock: FakeClock) {
        self.clock = Some(clock);
    }

    /// Returns its data directory.
    pub fn data(&self) -> PathBuf {
        self.folder.join(format!("agent-{}", self.name))
    }

    /// Reads its status file, which is written every five seconds; `None` unless it runs.
    pub fn status(&self) -> Option<Value> {
        let text = std::fs::read(self.data().join("status.json")).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// Joins with a token; the error is its output.
    pub fn join(&self, coordinator: SocketAddr, token: &str) -> Result<(), String> {
        let mut command = self.binary();
        command
            .args(["join", "--coordinator", &coordinator.to_string(), "--token", token])
            .arg("--data")
            .arg(self.data());
        output(command).map(drop)
    }

    /// Starts it. On loopback it may check all private addresses; in a namespace it uses the topology's name server.
    pub fn run(&mut self) {
        self.run_with(&[]);
    }

    /// As [`AgentProcess::run`], with further arguments.
    pub fn run_with(&mut self, more: &[&str]) {
        let mut command = self.binary();
        command.arg("run").arg("--data").arg(self.data()).args(more);
        if self.netns.is_none() {
            command.args(["--allow-private", "--allow-own-host"]);
        } else if !more.contains(&"--config") {
            command.env("PARALLAX_AGENT_RESOLVERS", "system");
        }
        self.process = Some(TestProcess::start(&format!("agent-{}", self.name), command, &self.folder));
    }

    /// Returns its process. Panics if it was never started.
    pub fn process(&mut self) -> &mut TestProcess {
        self.process.as_mut().expect("the agent runs")
    }

    fn binary(&self) -> Command {
        let mut command = command(self.netns.as_deref(), &binary("parallax-agent"));
        if let Some(clock) = &self.clock {
            clock.apply_to(&mut command);
        }
        command
    }
}

/// Parameters of a coordinator's start.
struct Launch<'a> {
    folder: &'a Path,
    binary: &'a Path,
    user: Option<u32>,
    descriptors: Option<u32>,
    environment: &'a [(String, String)],
    start: u32,
}

/// Starts the coordinator and waits until it has written its ready file, or has exited.
async fn launch(launch: Launch<'_>, arguments: &[String]) -> Result<(TestProcess, ReadyFile), StartFailure> {
    // A new file for every start, so that an earlier one is never mistaken for it.
    let file = launch.folder.join(format!("ready-{}.json", launch.start));
    let mut command = match launch.descriptors {
        None => Command::new(launch.binary),
        // `exec` keeps the process id.
        Some(most) => {
            let mut command = Command::new("prlimit");
            command.arg(format!("--nofile={most}:{most}")).arg(launch.binary);
            command
        }
    };
    command.args(arguments).arg("--ready-file").arg(&file).envs(launch.environment.iter().cloned());
    crate::fake_clock::follow_clock_file(launch.folder, &mut command);
    if let Some(user) = launch.user {
        command.uid(user);
    }
    let mut process = TestProcess::start("coordinator", command, launch.folder);
    let before = process.log().len();
    let ready = eventually("the coordinator is ready", START, async || match process.is_running() {
        true => std::fs::read(&file).ok().map(Some),
        false => Some(None),
    })
    .await;
    match ready {
        Some(ready) => Ok((process, serde_json::from_slice(&ready).expect("the ready file is whole when it appears"))),
        None => {
            let code = process.wait_for_exit(START).await.code();
            let log = process.log();
            Err(StartFailure { code, output: log.get(before..).unwrap_or(&log).to_owned() })
        }
    }
}

fn write_config(folder: &TempDir, config: &str) -> String {
    let file = folder.path().join("coordinator.toml");
    std::fs::write(&file, config).expect("config can be written");
    file.to_string_lossy().into_owned()
}

/// Returns a text field of a command's output.
fn text(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap_or_else(|| panic!("no text `{field}` in {value}")).to_owned()
}
