//! An installation under test: a coordinator, its agents, and what they keep, all in one temporary folder.

use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use tempfile::TempDir;

use crate::client::Client;
use crate::clocks::Faked;
use crate::eventually::eventually;
use crate::ports::fill_in;
use crate::process::{Process, binary, command, output};

/// Longest start of a coordinator.
const START: Duration = Duration::from_secs(90);
/// Longest wait for an agent to be welcomed.
const WELCOME: Duration = Duration::from_secs(60);

/// What the ready file says.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ready {
    /// Where HTTP is served.
    pub base_url: String,
    /// The write key made on first start.
    pub api_key: Option<String>,
    /// The page made on first start.
    pub page_id: Option<String>,
    /// Where that page is seen.
    pub page_url: Option<String>,
    /// Where agents join, over UDP.
    pub mesh: SocketAddr,
    /// The coordinator's process.
    pub pid: u32,
}

/// A running coordinator and its folder.
#[derive(Debug)]
pub struct Coordinator {
    /// The process. Declared before the folder, so that it is gone when the folder goes.
    pub process: Process,
    /// What it said when it was ready.
    pub ready: Ready,
    binary: PathBuf,
    user: Option<u32>,
    descriptors: Option<u32>,
    arguments: Vec<String>,
    starts: u32,
    folder: TempDir,
}

/// A coordinator that ended instead of serving.
#[derive(Debug)]
pub struct Refusal {
    /// Its exit status.
    pub code: Option<i32>,
    /// What it printed in this start.
    pub said: String,
}

impl Coordinator {
    /// `parallax serve` with its mesh port at `mesh` and the lines of `config`; in this namespace.
    pub async fn serve(mesh: SocketAddr, config: &str) -> Self {
        Self::serve_in(TempDir::new().expect("temporary folder"), mesh, config).await
    }

    /// As [`Coordinator::serve`], in a folder of which `data` may be there already.
    pub async fn serve_in(folder: TempDir, mesh: SocketAddr, config: &str) -> Self {
        let file = configured(&folder, config);
        let mesh = mesh.to_string();
        Self::start(folder, &["serve", "--config", &file, "--mesh-listen", &mesh]).await
    }

    /// As [`Coordinator::serve`] on loopback, with at most so many open descriptors.
    pub async fn serve_with_descriptors(most: u32, config: &str) -> Self {
        let folder = TempDir::new().expect("temporary folder");
        let file = configured(&folder, config);
        let arguments = ["serve", "--config", &file, "--mesh-listen", "127.0.0.1:0"];
        Self::start_with(folder, &arguments, Some(most)).await
    }

    /// As [`Coordinator::serve`] on loopback, with HTTP in the clear at that address: for who has to know it before.
    pub async fn serve_at(http: SocketAddr, config: &str) -> Self {
        let folder = TempDir::new().expect("temporary folder");
        let file = configured(&folder, config);
        let arguments =
            ["serve", "--config", &file, "--mesh-listen", "127.0.0.1:0", "--listen", &http.to_string()];
        Self::start_with(folder, &arguments, None).await
    }

    /// `parallax up` with further arguments, such as `--demo`.
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
        fill_in(&mut arguments);
        let binary = binary("parallax");
        let launching = Launch { folder: folder.path(), binary: &binary, user: None, descriptors, start: 0 };
        let (process, ready) = launch(launching, &arguments)
            .await
            .unwrap_or_else(|refusal| panic!("it does not start: {refusal:?}"));
        Self { process, ready, binary, user: None, descriptors, arguments, starts: 1, folder }
    }

    /// Starts it again on the same data and the same ports, after it was killed or stopped.
    pub async fn restart(&mut self) {
        self.try_restart().await.unwrap_or_else(|refusal| panic!("it does not start again: {refusal:?}"));
    }

    /// As [`Coordinator::restart`]; an error where it ends instead of serving.
    pub async fn try_restart(&mut self) -> Result<(), Refusal> {
        assert!(!self.process.running(), "it is stopped before it is started again");
        // Over TLS the address in the clear is another, and was given.
        let http = self.ready.base_url.strip_prefix("http://").map(|it| it.trim_end_matches('/').to_owned());
        let ports = http.map(|http| ("--listen", http));
        for (option, value) in ports.into_iter().chain([("--mesh-listen", self.ready.mesh.to_string())]) {
            let at = self.arguments.iter().position(|argument| argument == option).expect("option was given");
            self.arguments[at + 1] = value;
        }
        let (start, user, descriptors) = (self.starts, self.user, self.descriptors);
        self.starts += 1;
        let launching = Launch { folder: self.folder.path(), binary: &self.binary, user, descriptors, start };
        (self.process, self.ready) = launch(launching, &self.arguments).await?;
        Ok(())
    }

    /// Has it run as that user from the next start on: everything becomes that user's. Only root can.
    pub fn run_as(&mut self, user: u32) {
        // Where the binaries were built that user may not reach.
        let own = self.folder.path().join("parallax");
        std::fs::copy(&self.binary, &own).expect("the binary can be copied");
        self.binary = own;
        self.user = Some(user);
        let mut chown = Command::new("chown");
        chown.args(["-R", &user.to_string()]).arg(self.folder.path());
        output(chown).unwrap_or_else(|fault| panic!("{fault}"));
    }

    /// Its data directory.
    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// The API without a key.
    pub fn api(&self) -> Client {
        Client::new(&self.ready.base_url, None)
    }

    /// Runs a command of the operator, such as `page create`, and gives the JSON that it prints.
    pub fn command(&self, words: &[&str]) -> Result<Value, String> {
        let mut command = Command::new(binary("parallax"));
        command.args(words).arg("--data").arg(self.data()).arg("--json");
        let printed = output(command)?;
        serde_json::from_str(&printed)
            .map_err(|error| format!("{words:?} printed no JSON: {error}: {printed}"))
    }

    /// Makes an account on a plan, with a page and a write key.
    pub fn account(&self, plan: &str) -> Account {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let email = format!("owner{number}@example.com");
        let made = |words: &[&str]| self.command(words).unwrap_or_else(|fault| panic!("{fault}"));
        let account = text(&made(&["account", "create", "--email", &email, "--plan", plan]), "id");
        let slug = format!("page-{number}");
        let page = text(
            &made(&["page", "create", "--account", &account, "--name", "Page under test", "--slug", &slug]),
            "id",
        );
        let key = self.key(&account, "write");
        let client = self.api().with_key(Some(&key));
        Account { account, page, slug, key, client }
    }

    /// Makes a key of an account; `access` is `read` or `write`.
    pub fn key(&self, account: &str, access: &str) -> String {
        let made = self.command(&[
            "key",
            "create",
            "--account",
            account,
            "--name",
            "under test",
            "--access",
            access,
        ]);
        text(&made.unwrap_or_else(|fault| panic!("{fault}")), "key")
    }

    /// Invites an agent and gives its token.
    pub fn invite(&self, name: &str, region: &str, network: &str, more: &[&str]) -> Result<String, String> {
        let words =
            [&["agent", "invite", "--name", name, "--region", region, "--network", network], more].concat();
        Ok(text(&self.command(&words)?, "token"))
    }

    /// Invites an agent, has it join, and starts it; in a namespace, or here with private targets allowed.
    pub fn agent(&self, name: &str, region: &str, network: &str, netns: Option<&str>) -> Agent {
        let token = self.invite(name, region, network, &[]).unwrap_or_else(|fault| panic!("{fault}"));
        let mut agent = Agent::new(name, self.folder.path(), netns);
        agent.join(self.ready.mesh, &token).unwrap_or_else(|fault| panic!("{name} does not join: {fault}"));
        agent.run();
        agent
    }

    /// The same, over another address than the coordinator's own: the agent keeps to it.
    pub fn agent_over(&self, line: SocketAddr, name: &str, region: &str, network: &str) -> Agent {
        let token = self.invite(name, region, network, &[]).unwrap_or_else(|fault| panic!("{fault}"));
        let mut agent = Agent::new(name, self.folder.path(), None);
        agent.join(line, &token).unwrap_or_else(|fault| panic!("{name} does not join: {fault}"));
        agent.run();
        agent
    }

    /// The mesh's members as the operator sees them.
    pub fn members(&self) -> Vec<Value> {
        let listed = self.command(&["agent", "list"]).unwrap_or_else(|fault| panic!("{fault}"));
        let list = listed.as_array().or_else(|| listed["agents"].as_array());
        list.cloned().unwrap_or_else(|| panic!("agents are a list: {listed}"))
    }

    /// Waits until so many agents are connected.
    pub async fn connected(&self, count: usize) {
        let is = |member: &&Value| member["connected"] == true || member["status"] == "connected";
        eventually(&format!("{count} agents are connected"), WELCOME, async || {
            (self.members().iter().filter(is).count() >= count).then_some(())
        })
        .await;
    }
}

/// An account with one page and a write key.
#[derive(Debug)]
pub struct Account {
    /// Its id.
    pub account: String,
    /// Id of its page.
    pub page: String,
    /// Slug of its page.
    pub slug: String,
    /// The write key itself.
    pub key: String,
    /// The API with that key.
    pub client: Client,
}

/// An agent: its folder, and its process while it runs.
#[derive(Debug)]
pub struct Agent {
    name: String,
    folder: PathBuf,
    netns: Option<String>,
    clock: Option<Faked>,
    process: Option<Process>,
}

impl Agent {
    /// An agent that has neither joined nor run, with its data in `folder`.
    pub fn new(name: &str, folder: &Path, netns: Option<&str>) -> Self {
        Self {
            name: name.to_owned(),
            folder: folder.to_path_buf(),
            netns: netns.map(str::to_owned),
            clock: None,
            process: None,
        }
    }

    /// Has its wall clock be wrong from the next command on.
    pub fn set_clock(&mut self, clock: Faked) {
        self.clock = Some(clock);
    }

    /// Its data directory.
    pub fn data(&self) -> PathBuf {
        self.folder.join(format!("agent-{}", self.name))
    }

    /// What it says of itself, once in five seconds; none before the first time and after it was stopped.
    pub fn status(&self) -> Option<Value> {
        let text = std::fs::read(self.data().join("status.json")).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// Joins with a token; the error is what it printed.
    pub fn join(&self, coordinator: SocketAddr, token: &str) -> Result<(), String> {
        let mut command = self.binary();
        command
            .args(["join", "--coordinator", &coordinator.to_string(), "--token", token])
            .arg("--data")
            .arg(self.data());
        output(command).map(drop)
    }

    /// Starts it. On loopback it may check all that is there; in a world of namespaces it asks that world's name server.
    pub fn run(&mut self) {
        self.run_with(&[]);
    }

    /// As [`Agent::run`], with further arguments.
    pub fn run_with(&mut self, more: &[&str]) {
        let mut command = self.binary();
        command.arg("run").arg("--data").arg(self.data()).args(more);
        if self.netns.is_none() {
            command.args(["--allow-private", "--allow-own-host"]);
        } else if !more.contains(&"--config") {
            command.env("PARALLAX_AGENT_RESOLVERS", "system");
        }
        self.process = Some(Process::start(&format!("agent-{}", self.name), command, &self.folder));
    }

    /// Its process.
    pub fn process(&mut self) -> &mut Process {
        self.process.as_mut().expect("the agent runs")
    }

    fn binary(&self) -> Command {
        let mut command = command(self.netns.as_deref(), &binary("parallax-agent"));
        if let Some(clock) = &self.clock {
            clock.set(&mut command);
        }
        command
    }
}

/// What is started, and where.
struct Launch<'a> {
    folder: &'a Path,
    binary: &'a Path,
    user: Option<u32>,
    descriptors: Option<u32>,
    start: u32,
}

/// Starts the coordinator and waits until it says that it is ready, or has ended.
async fn launch(launch: Launch<'_>, arguments: &[String]) -> Result<(Process, Ready), Refusal> {
    // A file of its own for every start: one of an earlier start is never taken for this one's.
    let file = launch.folder.join(format!("ready-{}.json", launch.start));
    let mut command = match launch.descriptors {
        None => Command::new(launch.binary),
        // It becomes the program: the process stays the same.
        Some(most) => {
            let mut command = Command::new("prlimit");
            command.arg(format!("--nofile={most}:{most}")).arg(launch.binary);
            command
        }
    };
    command.args(arguments).arg("--ready-file").arg(&file);
    crate::clocks::follow(launch.folder, &mut command);
    if let Some(user) = launch.user {
        command.uid(user);
    }
    let mut process = Process::start("coordinator", command, launch.folder);
    let before = process.log().len();
    let ready = eventually("the coordinator is ready", START, async || match process.running() {
        true => std::fs::read(&file).ok().map(Some),
        false => Some(None),
    })
    .await;
    match ready {
        Some(ready) => {
            Ok((process, serde_json::from_slice(&ready).expect("the ready file is whole when it appears")))
        }
        None => {
            let code = process.ended(START).await.code();
            let log = process.log();
            Err(Refusal { code, said: log.get(before..).unwrap_or(&log).to_owned() })
        }
    }
}

fn configured(folder: &TempDir, config: &str) -> String {
    let file = folder.path().join("coordinator.toml");
    std::fs::write(&file, config).expect("config can be written");
    file.to_string_lossy().into_owned()
}

/// A text field of what a command printed.
fn text(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap_or_else(|| panic!("no text `{field}` in {value}")).to_owned()
}
