//! Tables of the import rules, as in `ARCHITECTURE.md`: modules, crates, and names that only one module may use.

/// Permitted import from another module.
#[derive(Debug, Clone, Copy)]
pub(super) enum AllowedImport {
    /// Anything in the module.
    All(&'static str),
    /// Types of the module's top file, none of its submodules.
    Types(&'static str),
    /// A submodule of the module.
    Submodule(&'static str, &'static str),
}

use AllowedImport::{All, Submodule, Types};

/// A top-level module of the coordinator (a folder or file directly below `src/`), the imports it may have, and the
/// reason.
pub(super) struct ModuleRule(pub(super) &'static str, pub(super) &'static [AllowedImport], pub(super) &'static str);

pub(super) const MODULE_RULES: &[ModuleRule] = &[
    ModuleRule("clock", &[], "the clock is the lowest layer"),
    ModuleRule("config", &[], "settings are parsed once, by a file that depends on no module"),
    ModuleRule("console", &[], "it only prints its input"),
    ModuleRule("plain_text", &[], "it converts text, for every module that shows text"),
    ModuleRule("log_limit", &[], "it counts log lines and depends on no module"),
    ModuleRule("supervisor", &[], "it runs any task"),
    ModuleRule("guarded_client", &[], "it sends requests for any module"),
    ModuleRule("telemetry", &[All("config")], "logging is set up before any module starts"),
    ModuleRule(
        "views",
        &[All("plain_text")],
        "views use core types only, so that tests can render them without a service",
    ),
    ModuleRule("storage", &[], "the store knows the domain's records and none of its users"),
    ModuleRule(
        "history",
        &[All("storage")],
        "blocks and statistics are built from readings, independent of their users",
    ),
    ModuleRule(
        "members",
        &[All("storage"), All("clock"), Types("mesh")],
        "membership implements the mesh's traits, and uses nothing else of the mesh",
    ),
    ModuleRule(
        "engine",
        &[All("storage"), All("history"), All("clock")],
        "the pipeline flows one way: the engine judges and commits, others react",
    ),
    ModuleRule(
        "mesh",
        &[All("clock"), All("log_limit"), All("supervisor"), Types("engine"), Types("storage")],
        "the mesh turns frames into observations; it reaches the engine by its inbox and its requests only",
    ),
    ModuleRule(
        "page_cache",
        &[All("service"), All("views")],
        "documents contain only data that the service lets a visitor see, after access control",
    ),
    ModuleRule(
        "notify/render",
        &[All("plain_text")],
        "messages use core types only, so that tests can render them without sending",
    ),
    ModuleRule(
        "notify/consumers",
        &[All("storage"), All("clock"), All("notify/render")],
        "consumers read the journal; none may change a monitor's state or use the network",
    ),
    ModuleRule(
        "notify/deliver",
        &[All("storage"), All("clock"), All("notify/render"), All("supervisor"), All("guarded_client")],
        "a delivery sends the stored message, and decides nothing",
    ),
    ModuleRule(
        "scheduler",
        &[All("storage"), All("clock")],
        "time-driven transitions are committed like all others, and reported by the journal",
    ),
    ModuleRule(
        "service",
        &[All("storage"), All("clock"), All("notify/render"), Types("engine")],
        "three interfaces call the service; it knows none of them",
    ),
    ModuleRule(
        "tls",
        &[All("clock"), All("guarded_client")],
        "certificates are managed for given hostnames; their ownership belongs to the service",
    ),
    ModuleRule(
        "domain_verification",
        &[All("service")],
        "it queries name servers; the service decides about the result",
    ),
    ModuleRule(
        "http",
        &[
            All("service"),
            All("tls"),
            All("page_cache"),
            All("views"),
            All("clock"),
            All("notify/render"),
            All("log_limit"),
            Submodule("notify/deliver", "signature"),
        ],
        "HTTP calls the service, and documents deliveries; it never bypasses the service to the store or the engine",
    ),
    ModuleRule(
        "admin",
        &[All("service"), All("members"), All("config"), All("console"), Types("storage")],
        "the admin socket calls the service and the membership records, and recognizes a locked store",
    ),
    ModuleRule(
        "up",
        &[
            All("app"),
            All("admin"),
            All("service"),
            All("members"),
            All("config"),
            All("clock"),
            All("console"),
            All("telemetry"),
            Types("engine"),
            Types("mesh"),
        ],
        "one host, one process: it starts the app and local agents, and uses no module directly",
    ),
];

/// Files that may import every module: they assemble the service, stop it in order, or choose the part that runs.
pub(super) const UNRESTRICTED: &[&str] = &["app", "cli", "drain", "lib", "main", "notify"];

/// A name of another crate, the only files that may use it, and the reason.
pub(super) struct RestrictedName(pub(super) &'static str, pub(super) &'static [&'static str], pub(super) &'static str);

pub(super) const RESTRICTED_NAMES: &[RestrictedName] = &[
    RestrictedName(
        "sled",
        &["coordinator/src/storage/disk"],
        "the storage engine can be replaced only while one folder uses it",
    ),
    RestrictedName("warp", &["coordinator/src/http"], "HTTP is an interface; no module behind it may depend on it"),
    RestrictedName(
        "quinn",
        &["coordinator/src/mesh", "agent/src"],
        "connections and their limits are set in one place on each side",
    ),
    RestrictedName(
        "parallax_protocol",
        &["coordinator/src/mesh", "agent/src"],
        "wire types stop at the mesh: rules that used them would freeze or break the format",
    ),
    RestrictedName(
        "parallax_agent",
        &["coordinator/src/up", "agent/src"],
        "the coordinator needs the agent only where it starts local ones",
    ),
    RestrictedName(
        "parallax_certs",
        &[
            "coordinator/src/mesh",
            "coordinator/src/members",
            "coordinator/src/app",
            "coordinator/src/up",
            "coordinator/src/cli",
            "coordinator/src/config",
            "coordinator/src/storage",
            "coordinator/src/tls/acme",
            "agent/src",
        ],
        "membership belongs to the mesh; private files are written in one way, and records are sealed by one \
         cipher",
    ),
    RestrictedName(
        "parallax_dial",
        &[
            "coordinator/src/guarded_client",
            "coordinator/src/notify/deliver",
            "coordinator/src/domain_verification",
            "coordinator/src/service",
            "coordinator/src/app",
            "coordinator/src/tls/acme",
            "agent/src",
        ],
        "only probes, deliveries and domain checks connect to addresses that customers give; the service uses the \
         address table, and domains the resolver",
    ),
    RestrictedName(
        "reqwest",
        &["coordinator/src/guarded_client", "coordinator/src/tls/acme/client"],
        "outgoing requests go through one guarded client, except to the authority that the operator chose",
    ),
    RestrictedName("instant_acme", &["coordinator/src/tls/acme"], "ACME is used in one place, by a client with limits"),
    RestrictedName("lettre", &["coordinator/src/notify/deliver"], "only deliveries send mail"),
    RestrictedName(
        "askama",
        &["coordinator/src/views", "coordinator/src/notify/render"],
        "only pages and messages have templates",
    ),
];

/// Calls that open a connection, and the only files that may make them: anything else would bypass the address guard.
pub(super) const CONNECTS: &[&str] = &["TcpStream::connect", "TcpSocket::new", "Socket::new"];
pub(super) const MAY_CONNECT: &[&str] = &["protocol/dial/src"];

/// Crates of the workspace, and those of them that each may depend on outside of tests.
pub(super) const CRATES: &[(&str, &[&str], &str)] = &[
    ("coordinator/core", &[], "the rules have no IO, clock or runtime"),
    ("protocol", &[], "the wire format must not change with a type of the rules"),
    ("protocol/dial", &[], "the address guard is used by both sides and depends on neither"),
    ("certs", &[], "trust is independent of the protocol"),
    (
        "agent",
        &["parallax-protocol", "parallax-dial", "parallax-certs"],
        "an agent measures; it does not apply the rules",
    ),
    (
        "coordinator",
        &["parallax-core", "parallax-protocol", "parallax-dial", "parallax-certs", "parallax-agent"],
        "nothing may depend on the tests",
    ),
];
