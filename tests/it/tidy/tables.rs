//! The tables of `ARCHITECTURE.md` that the import checks keep: rooms, crates, and names that belong to one room.

/// What one room may take from another.
#[derive(Debug, Clone, Copy)]
pub(super) enum May {
    /// Anything of the room.
    All(&'static str),
    /// Types of the room's top file, none of its inner modules.
    Types(&'static str),
    /// One module of the room.
    Part(&'static str, &'static str),
}

use May::{All, Part, Types};

/// A room of the coordinator (a folder or a file right below `src/`), what it may import, and why no more.
pub(super) struct Room(pub(super) &'static str, pub(super) &'static [May], pub(super) &'static str);

pub(super) const ROOMS: &[Room] = &[
    Room("clock", &[], "the clock is at the bottom of the house"),
    Room("config", &[], "settings are parsed once, by a file that knows no room"),
    Room("out", &[], "it prints what it is given"),
    Room("plain_text", &[], "it turns text into text, for every room that shows any"),
    Room("log_limit", &[], "it counts lines and knows no module"),
    Room("supervise", &[], "it begins what it is given, whatever that is"),
    Room("telemetry", &[All("config")], "logging is set up before any room is built"),
    Room(
        "views",
        &[All("plain_text")],
        "a view is made of core types only, so that it can be drawn in a test without a service",
    ),
    Room("storage", &[], "the store knows the domain's values and none of its users"),
    Room(
        "history",
        &[All("storage")],
        "blocks and figures are made of readings; who asks for them is not its affair",
    ),
    Room(
        "members",
        &[All("storage"), All("clock"), Types("mesh")],
        "who may join is kept for the mesh by the traits it asks for, and reaches into nothing of it",
    ),
    Room(
        "flow",
        &[All("storage"), All("history"), All("clock")],
        "the river flows one way: it judges and commits, others react",
    ),
    Room(
        "mesh",
        &[All("clock"), All("log_limit"), All("supervise"), Types("flow"), Types("storage")],
        "the mesh turns frames into observations; it reaches the flow by its inbox and its questions alone",
    ),
    Room(
        "publish",
        &[All("service"), All("views")],
        "documents are drawn from what the service lets a visitor see, and of nothing that passed no gate",
    ),
    Room(
        "letters",
        &[All("plain_text")],
        "a letter is made of core types only, so that it can be read in a test without anything being sent",
    ),
    Room(
        "react",
        &[All("storage"), All("clock"), All("letters"), All("publish")],
        "reactions read the journal; none may change a monitor's state or speak to the outside",
    ),
    Room(
        "deliver",
        &[All("storage"), All("clock"), All("letters"), All("supervise")],
        "a delivery sends what was stored for it, and decides nothing",
    ),
    Room(
        "calendar",
        &[All("storage"), All("clock")],
        "what time alone brings about is committed like anything else, and told by the journal",
    ),
    Room(
        "service",
        &[All("storage"), All("clock"), All("letters"), Types("flow")],
        "three doors call the service; it knows none of them",
    ),
    Room(
        "tls",
        &[All("clock")],
        "certificates are kept for names that others give; whose they are is the service's affair",
    ),
    Room(
        "domains",
        &[All("service")],
        "it asks name servers; what their answers mean is the service's affair",
    ),
    Room(
        "http",
        &[
            All("service"),
            All("tls"),
            All("publish"),
            All("views"),
            All("clock"),
            All("letters"),
            All("log_limit"),
            Part("deliver", "sign"),
        ],
        "the HTTP door asks the service, and describes what is delivered; it never reaches around it into the store or the flow",
    ),
    Room(
        "admin",
        &[All("service"), All("members"), All("config"), All("out"), Types("storage")],
        "the operator's door calls the service and the members' records, and tells a locked store from others",
    ),
    Room(
        "up",
        &[
            All("app"),
            All("admin"),
            All("service"),
            All("members"),
            All("config"),
            All("clock"),
            All("out"),
            All("telemetry"),
            Types("mesh"),
        ],
        "one host, one process: it starts the app and local agents and has no way of its own into the rooms",
    ),
];

/// Files that may name every room: they build the house, stop it in order, or choose which part of it runs.
pub(super) const EVERYTHING: &[&str] = &["app", "cli", "drain", "lib", "main"];

/// A name of another crate, where alone in the tree it may stand, and why.
pub(super) struct Alone(pub(super) &'static str, pub(super) &'static [&'static str], pub(super) &'static str);

pub(super) const ALONE: &[Alone] = &[
    Alone(
        "sled",
        &["coordinator/src/storage/disk"],
        "the engine can be replaced only while one folder knows it",
    ),
    Alone("warp", &["coordinator/src/http"], "HTTP is a door; no room behind it may know what knocks"),
    Alone(
        "quinn",
        &["coordinator/src/mesh", "agent/src"],
        "connections and their limits are made in one place of each end",
    ),
    Alone(
        "parallax_protocol",
        &["coordinator/src/mesh", "agent/src"],
        "wire types stop at the mesh: a rule that used them would freeze the format or break it",
    ),
    Alone(
        "parallax_agent",
        &["coordinator/src/up", "agent/src"],
        "the coordinator needs agents only where it starts some",
    ),
    Alone(
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
        "who may join is the mesh's affair; files for their owner alone are written in one way, and records \
         are sealed by one cipher",
    ),
    Alone(
        "parallax_dial",
        &[
            "coordinator/src/deliver",
            "coordinator/src/domains",
            "coordinator/src/service",
            "coordinator/src/app",
            "coordinator/src/tls/acme",
            "agent/src",
        ],
        "only probes, deliveries and a look at where a name leads speak to addresses that customers give; the service asks \
         the table of addresses, and domains the name servers",
    ),
    Alone(
        "reqwest",
        &["coordinator/src/deliver", "agent/src/probe"],
        "what leaves the house goes through one guarded client",
    ),
    Alone(
        "instant_acme",
        &["coordinator/src/tls/acme"],
        "an authority is asked in one place, by a client with bounds",
    ),
    Alone(
        "hyper_rustls",
        &["coordinator/src/tls/acme"],
        "what leaves the house goes through one guarded client; the authority is the operator's own choice",
    ),
    Alone("lettre", &["coordinator/src/deliver"], "mail is sent by deliveries alone"),
    Alone(
        "askama",
        &["coordinator/src/views", "coordinator/src/letters"],
        "templates are the affair of what is shown and what is written",
    ),
];

/// Calls that open a connection, and where alone they may stand: everything else would dial without the guard.
pub(super) const CONNECTS: &[&str] = &["TcpStream::connect", "TcpSocket::new", "Socket::new"];
pub(super) const MAY_CONNECT: &[&str] = &["protocol/dial/src"];

/// Crates of ours, and which of ours they may depend on outside of tests.
pub(super) const CRATES: &[(&str, &[&str], &str)] = &[
    ("coordinator/core", &[], "the rules stand alone, without IO, clock or runtime"),
    ("protocol", &[], "the wire format must not move when a rule's type does"),
    ("protocol/dial", &[], "the guard is used by both ends and knows neither"),
    ("certs", &[], "trust is decided without knowing what is spoken"),
    (
        "agent",
        &["parallax-protocol", "parallax-dial", "parallax-certs"],
        "an agent measures; the rules are not its affair",
    ),
    (
        "coordinator",
        &["parallax-core", "parallax-protocol", "parallax-dial", "parallax-certs", "parallax-agent"],
        "nothing may depend on the tests",
    ),
];
