//! The screens that Chromium visits: every address of the dashboard with a screen is among them.

use std::fs;

use super::source::root;

/// List of the addresses, as a script.
const ADDRESSES: &str = "tests/tools/page/dashboard_addresses.mjs";
/// Table of the routes.
const ROUTES: &str = "coordinator/web/src/http/tests/dashboard_route_table.rs";
/// Begin of the list in the script.
const LIST: &str = "export const addresses";

/// Variables of the script with the routes that they are addresses of. `monitorOf` makes the address of a monitor.
const VARIABLES: [(&str, &str); 8] = [
    ("page", "/app/pages/{page}"),
    ("up", "/app/pages/{page}/monitors/{monitor}"),
    ("down", "/app/pages/{page}/monitors/{monitor}"),
    ("open", "/app/pages/{page}/incidents/{incident}"),
    ("past", "/app/pages/{page}/incidents/{incident}"),
    ("window", "/app/pages/{page}/incidents/{incident}"),
    ("destination", "/app/pages/{page}/destinations/{destination}"),
    ("delivery", "/app/pages/{page}/deliveries/{delivery}"),
];

/// Routes without a screen of their own, or with one that needs more than the demo's data, and why.
const OTHERS: [(&str, &str); 12] = [
    ("/app/live", "a stream"),
    ("/app/pages/{page}/subscribers.csv", "a file"),
    ("/app/account/audit.csv", "a file"),
    ("/app/pages/{page}/preview", "the status page in a frame"),
    ("/app/pages/{page}/settings", "leads to the first section"),
    ("/app/mesh/invitations/{invitation}", "drawn by `agent-invited`"),
    ("/app/account/members/{person}/remove", "needs a second member that may be removed"),
    ("/app/account/switch", "needs a person with two accounts"),
    ("/app/account/security/passkeys/new", "needs an address with passkeys, which an IP address has not"),
    ("/app/account/security/passkeys/{passkey}", "the same"),
    ("/app/account/security/passkeys/{passkey}/remove", "the same"),
    ("/confirm", "drawn on the way to other screens"),
];

/// Reads the routes that are shown by `GET`.
fn shown_routes(table: &str) -> Vec<&str> {
    table.lines().filter_map(|line| line.trim().strip_prefix("(\"GET\", \"")?.split('"').next()).collect()
}

/// Reads the addresses of the list as patterns: the path without its query, in which `*` is one segment.
fn listed_patterns(script: &str) -> Vec<String> {
    let list = script.split_once(LIST).map_or("", |(_, list)| list);
    list.lines().filter_map(|line| pattern(address_of(line)?)).collect()
}

/// Returns the address of an entry, as it is written: what follows the name.
fn address_of(line: &str) -> Option<&str> {
    let entry = line.trim().rsplit_once('[')?.1;
    let (_, address) = entry.split_once(", ")?;
    Some(address.trim_end_matches([']', ')', ',']))
}

fn pattern(address: &str) -> Option<String> {
    if address.starts_with("monitorOf(") {
        return Some(VARIABLES[1].1.to_owned());
    }
    if let Some((_, route)) = VARIABLES.into_iter().find(|(name, _)| *name == address) {
        return Some(route.to_owned());
    }
    let text = address.trim_matches(['"', '`']);
    let path = VARIABLES
        .into_iter()
        .fold(text.to_owned(), |path, (name, route)| path.replace(&format!("${{{name}}}"), route))
        .replace("${section}", "*");
    let path = path.split('?').next().unwrap_or_default().to_owned();
    path.starts_with('/').then_some(path)
}

/// Returns true if a route has addresses of that pattern: a parameter of either stands for one segment.
fn is_of(pattern: &str, route: &str) -> bool {
    let (one, other): (Vec<&str>, Vec<&str>) = (pattern.split('/').collect(), route.split('/').collect());
    let is_same =
        |(one, other): (&&str, &&str)| one == other || *one == "*" || (other.starts_with('{') && !one.is_empty());
    one.len() == other.len() && one.iter().zip(&other).all(is_same)
}

#[test]
fn chromium_visits_every_screen_of_the_dashboard() {
    let read = |path: &str| fs::read_to_string(root().join(path)).expect(path);
    let (table, script) = (read(ROUTES), read(ADDRESSES));
    let (routes, patterns) = (shown_routes(&table), listed_patterns(&script));
    assert!(routes.len() > 40 && patterns.len() > 50, "{} routes, {} addresses", routes.len(), patterns.len());
    // A fixed route goes before one with a parameter: `/agents/new` is no agent.
    let route_of = |pattern: &String| {
        let exact = routes.iter().find(|route| *route == pattern);
        exact.or_else(|| routes.iter().find(|route| is_of(pattern, route)))
    };
    let unknown: Vec<&String> = patterns.iter().filter(|pattern| route_of(pattern).is_none()).collect();
    assert!(unknown.is_empty(), "{ADDRESSES} lists addresses without a route: {unknown:?}");
    let is_visited = |route: &&str| {
        patterns
            .iter()
            .any(|pattern| route_of(pattern) == Some(route) || (pattern.contains('*') && is_of(pattern, route)))
    };
    let missing: Vec<&&str> =
        routes.iter().filter(|route| !is_visited(route) && !OTHERS.iter().any(|(other, _)| other == *route)).collect();
    assert!(missing.is_empty(), "{ADDRESSES} lacks an address of {missing:?}");
    let needless: Vec<&str> =
        OTHERS.iter().map(|(route, _)| *route).filter(|route| !routes.contains(route) || is_visited(route)).collect();
    assert!(needless.is_empty(), "listed as not visited for nothing: {needless:?}");
}

#[test]
fn addresses_are_read_as_they_are_written() {
    let script = "const page = 1;\nexport const addresses = [\n  ...of(\"all\", [\n    [\"a\", \"/app\"],\n    \
                  [\"b\", `${page}/monitors?state=down`],\n    [\"c\", down],\n    [\"d\", monitorOf((it) => it.up)],\n    \
                  ...types.map((type) => [`e-${type}`, monitorOf((it) => it.type === type)]),\n    \
                  .map((section) => [`f-${section}`, `${page}/settings/${section}`]),\n  ]),\n];\n";
    let monitor = "/app/pages/{page}/monitors/{monitor}";
    let settings = "/app/pages/{page}/settings/*";
    assert_eq!(listed_patterns(script), ["/app", "/app/pages/{page}/monitors", monitor, monitor, monitor, settings]);
    assert!(is_of(settings, "/app/pages/{page}/settings/look") && !is_of(settings, "/app/pages/{page}/settings"));
    assert!(is_of("/app/mesh/agents/jnb1", "/app/mesh/agents/{agent}") && !is_of("/app/mesh", "/app/{area}/agents"));
    assert_eq!(shown_routes("    (\"GET\", \"/app\", Members),\n    (\"POST\", \"/app/x\", Owners),\n"), ["/app"]);
}
