//! Tables of the import rules: crates, modules, and names that only one place may use. `architecture.rs` compares them
//! with `ARCHITECTURE.md`.

/// A module of the coordinator in a crate with several layers, the modules of that crate that it may import, and the
/// reason. Named as in `ARCHITECTURE.md`: the crate and the module, or the module alone in the crate of the program.
pub(super) struct ModuleRule(pub(super) &'static str, pub(super) &'static [&'static str], pub(super) &'static str);

pub(super) const MODULE_RULES: &[ModuleRule] = &[
    ModuleRule("config", &[], "settings are parsed once, by a file that depends on no module"),
    ModuleRule("console", &[], "it only prints its input"),
    ModuleRule("telemetry", &["config"], "logging is set up before any module starts"),
    ModuleRule("admin", &["config", "console"], "the admin socket calls the service and the membership records"),
    ModuleRule(
        "up",
        &["app", "admin", "config", "console", "telemetry"],
        "one host, one process: it starts the app and local agents, and creates the first records",
    ),
    ModuleRule("notify/render", &[], "messages use core types only, so that tests can render them without sending"),
    ModuleRule(
        "notify/consumers",
        &["notify/render"],
        "consumers read the journal; none may change a monitor's state or use the network",
    ),
    ModuleRule("notify/deliver", &["notify/render"], "a delivery sends the stored message, and decides nothing"),
    ModuleRule("web/views", &[], "views use core types only, so that tests can render them without a service"),
    ModuleRule("web/tls", &[], "certificates are managed for given hostnames; their ownership belongs to the service"),
    ModuleRule(
        "web/page_cache",
        &["web/views"],
        "documents contain only data that the service lets a visitor see, after access control",
    ),
    ModuleRule(
        "web/http",
        &["web/page_cache", "web/views", "web/tls"],
        "HTTP calls the service; it never bypasses the service to the store or the engine",
    ),
];

/// Crates with several layers: every module of theirs has a rule.
pub(super) const LAYERED: &[&str] = &["coordinator", "coordinator/notify", "coordinator/web"];

/// Files of the program that may import every module: they assemble the service, stop it in order, or choose the part
/// that runs.
pub(super) const UNRESTRICTED: &[&str] = &["app", "cli", "lib", "main", "shutdown"];

/// A name of another crate or a path in it, the only places that may use it, and the reason.
pub(super) struct RestrictedName(pub(super) &'static str, pub(super) &'static [&'static str], pub(super) &'static str);

pub(super) const RESTRICTED_NAMES: &[RestrictedName] = &[
    RestrictedName(
        "sled",
        &["coordinator/store/src/disk"],
        "the storage engine can be replaced only while one folder uses it",
    ),
    RestrictedName(
        "parallax_store::disk",
        &["coordinator/src/app"],
        "crates use the store's traits; only the program chooses the engine",
    ),
    RestrictedName(
        "parallax_engine::driver",
        &["coordinator/src/app"],
        "other crates reach the engine by its inbox and its requests only",
    ),
    RestrictedName("warp", &["coordinator/web/src/http"], "HTTP is an interface; no module behind it may depend on it"),
    RestrictedName(
        "quinn",
        &["coordinator/mesh/src", "agent/src"],
        "connections and their limits are set in one place on each side",
    ),
    RestrictedName(
        "parallax_agent",
        &["coordinator/src/up", "agent/src", "agent/examples"],
        "the coordinator needs the agent only where it starts local ones",
    ),
    RestrictedName(
        "parallax_certs",
        &[
            "coordinator/mesh/src",
            "coordinator/src/app",
            "coordinator/src/up",
            "coordinator/src/cli",
            "coordinator/src/config",
            "coordinator/store/src",
            "coordinator/web/src/tls/acme",
            "agent/src",
        ],
        "membership belongs to the mesh; private files are written in one way, and records are sealed by one cipher",
    ),
    RestrictedName(
        "parallax_dial",
        &[
            "coordinator/guarded_client/src",
            "coordinator/notify/src/deliver",
            "coordinator/service/src",
            "coordinator/src/app",
            "coordinator/web/src/tls/acme",
            "agent/src",
        ],
        "only probes, deliveries and domain checks connect to addresses that customers give; the service uses the \
         address table, and domains the resolver",
    ),
    RestrictedName(
        "reqwest",
        &["coordinator/guarded_client/src", "coordinator/web/src/tls/acme/client"],
        "outgoing requests go through one guarded client, except to the authority that the operator chose",
    ),
    RestrictedName("instant_acme", &["coordinator/web/src/tls/acme"], "ACME is used in one place, with limits"),
    RestrictedName("lettre", &["coordinator/notify/src/deliver"], "only deliveries send mail"),
    RestrictedName(
        "askama",
        &["coordinator/web/src/views", "coordinator/notify/src/render"],
        "only pages and messages have templates",
    ),
    RestrictedName(
        "totp_rs",
        &["coordinator/service/src/people"],
        "codes of a second factor are computed where they are counted, once each",
    ),
    RestrictedName(
        "openidconnect",
        &["coordinator/service/src/people"],
        "a company's provider is asked, and its proof verified, where the session is made",
    ),
    RestrictedName(
        "webauthn_rs",
        &["coordinator/service/src/people/passkeys"],
        "answers of passkeys are verified where their ceremonies are, once each",
    ),
    RestrictedName("qrcode", &["coordinator/web/src/views/dashboard"], "only the set-up of an app shows a QR code"),
];

/// Calls that open a connection, and the only files that may make them: anything else would bypass the address guard.
pub(super) const CONNECTS: &[&str] = &["TcpStream::connect", "TcpSocket::new", "Socket::new"];
pub(super) const MAY_CONNECT: &[&str] = &["protocol/dial/src"];

/// Crates of the workspace, and those of them that each may depend on outside of tests and build scripts.
pub(super) const CRATES: &[(&str, &[&str], &str)] = &[
    ("coordinator/core", &["parallax-primitives"], "the rules have no IO, clock or runtime"),
    ("coordinator/i18n", &["parallax-core"], "texts are values"),
    (
        "coordinator/guarded_client",
        &["parallax-dial"],
        "requests to addresses that customers choose pass the guard of dial",
    ),
    ("coordinator/markdown", &[], "text is converted alike wherever it is shown"),
    ("coordinator/runtime", &["parallax-core"], "every crate of the coordinator uses it, and it knows none of them"),
    (
        "coordinator/store",
        &["parallax-core", "parallax-certs"],
        "the store knows the domain's records and none of its users",
    ),
    (
        "coordinator/engine",
        &["parallax-core", "parallax-store", "parallax-runtime"],
        "the pipeline flows one way: the engine judges and commits, others react",
    ),
    (
        "coordinator/mesh",
        &[
            "parallax-core",
            "parallax-protocol",
            "parallax-certs",
            "parallax-store",
            "parallax-engine",
            "parallax-runtime",
        ],
        "the mesh turns frames into observations; wire types stop at it",
    ),
    (
        "coordinator/notify",
        &[
            "parallax-core",
            "parallax-i18n",
            "parallax-runtime",
            "parallax-markdown",
            "parallax-guarded-client",
            "parallax-store",
            "parallax-dial",
            "parallax-template",
        ],
        "notifications follow the journal",
    ),
    (
        "coordinator/service",
        &[
            "parallax-core",
            "parallax-runtime",
            "parallax-store",
            "parallax-engine",
            "parallax-notify",
            "parallax-dial",
            "parallax-guarded-client",
        ],
        "three interfaces call the service; it knows none of them",
    ),
    (
        "coordinator/web",
        &[
            "parallax-core",
            "parallax-i18n",
            "parallax-runtime",
            "parallax-markdown",
            "parallax-guarded-client",
            "parallax-notify",
            "parallax-service",
            "parallax-certs",
            "parallax-dial",
            "parallax-template",
        ],
        "HTTP reaches store and engine only through the service",
    ),
    (
        "coordinator",
        &[
            "parallax-core",
            "parallax-runtime",
            "parallax-store",
            "parallax-engine",
            "parallax-mesh",
            "parallax-notify",
            "parallax-service",
            "parallax-web",
            "parallax-certs",
            "parallax-dial",
            "parallax-primitives",
            "parallax-agent",
        ],
        "the program assembles the crates; nothing may depend on the tests",
    ),
    ("coordinator/minify", &[], "build scripts use it"),
    ("coordinator/template", &[], "the attribute for templates knows askama's attributes only"),
    ("protocol", &["parallax-primitives"], "the wire format must not change with a type of the rules"),
    ("protocol/primitives", &[], "bits, hosts and log filters are read alike wherever they are read"),
    ("protocol/dial", &["parallax-primitives"], "the address guard is used by both sides and depends on neither"),
    ("certs", &[], "trust is independent of the protocol"),
    (
        "agent",
        &["parallax-protocol", "parallax-dial", "parallax-certs", "parallax-primitives"],
        "an agent measures; it does not apply the rules",
    ),
];
