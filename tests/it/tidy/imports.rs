//! Import rules that manifests and private modules can't express: reads the paths that a file names and compares them
//! with the tables of `ARCHITECTURE.md`.

use std::collections::BTreeSet;

use super::source::{SourceFile, code, files, is_word, test_only, without_tests};
use super::tables::{
    CONNECTS, CRATES, LAYERED, MAY_CONNECT, MODULE_RULES, ModuleRule, RESTRICTED_NAMES, RestrictedName, UNRESTRICTED,
};

#[test]
fn modules_import_only_what_their_table_allows() {
    let sources = files(&[".rs"]);
    let tests = test_only(&sources);
    let faults: Vec<String> = sources.iter().filter(|s| !tests.contains(&s.path)).flat_map(import_faults).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn names_stand_only_in_their_home() {
    let sources = files(&[".rs"]);
    let tests = test_only(&sources);
    let faults: Vec<String> =
        sources.iter().filter(|s| !tests.contains(&s.path)).flat_map(restricted_name_faults).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn crates_depend_only_on_what_lies_below_them() {
    let manifests = files(&["Cargo.toml"]);
    let mut faults = Vec::new();
    for (folder, may, why) in CRATES {
        let path = format!("{folder}/Cargo.toml");
        let manifest = manifests.iter().find(|m| m.path == path).expect("every crate has a manifest");
        let manifest: toml::Table = manifest.text.parse().expect("manifest is TOML");
        for name in dependencies(&manifest, "dependencies") {
            if name.starts_with("parallax-") && !may.contains(&name.as_str()) {
                faults.push(format!("{path}: depends on {name}: {why}"));
            }
        }
        for name in dependencies(&manifest, "build-dependencies") {
            if name.starts_with("parallax-") && name != "parallax-minify" {
                faults.push(format!("{path}: its build script depends on {name}: only parallax-minify is for those"));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn every_crate_is_in_the_table() {
    let manifests = files(&["Cargo.toml"]);
    let workspace = manifests.iter().find(|m| m.path == "Cargo.toml").expect("the workspace has a manifest");
    let workspace: toml::Table = workspace.text.parse().expect("manifest is TOML");
    let members = workspace["workspace"]["members"].as_array().expect("members are a list");
    let members: BTreeSet<&str> = members.iter().filter_map(toml::Value::as_str).collect();
    // Nothing imports the tests, and they may import any.
    let known: BTreeSet<&str> = CRATES.iter().map(|(folder, _, _)| *folder).chain(["tests"]).collect();
    assert_eq!(members, known);
}

/// Returns the packages in a manifest's section of that name, on any platform.
fn dependencies(manifest: &toml::Table, section: &str) -> Vec<String> {
    let targets = manifest.get("target").and_then(toml::Value::as_table).into_iter().flatten();
    let tables = targets.filter_map(|(_, target)| target.as_table()).chain([manifest]);
    let entries = tables.filter_map(|table| table.get(section)?.as_table()).flatten();
    let package = |(name, value): (&String, &toml::Value)| {
        value.get("package").and_then(toml::Value::as_str).map_or_else(|| name.clone(), str::to_owned)
    };
    entries.map(package).collect()
}

/// Returns the imports of a file in a crate with layers that the table does not allow.
fn import_faults(source: &SourceFile) -> Vec<String> {
    let Some((folder, below)) = source.path.split_once("/src/") else { return Vec::new() };
    if !LAYERED.contains(&folder) {
        return Vec::new();
    }
    let named = |module: &str| match folder.strip_prefix("coordinator/") {
        Some(name) => format!("{name}/{module}"),
        None => module.to_owned(),
    };
    let modules = module_path(below);
    // The root of a library declares its modules.
    let Some(top) = modules.first() else { return Vec::new() };
    let module = named(top);
    if UNRESTRICTED.contains(&module.as_str()) {
        return Vec::new();
    }
    let Some(ModuleRule(_, may, why)) = MODULE_RULES.iter().find(|r| r.0 == module) else {
        return vec![format!("{}: the module `{module}` has no line in the table of allowed imports", source.path)];
    };
    let is_module = |name: &str| UNRESTRICTED.contains(&name) || MODULE_RULES.iter().any(|r| r.0 == name);
    let mut faults = Vec::new();
    for path in crate_paths(&without_tests(&code(&source.text)).0, modules.len()) {
        let other = path.first().map(|first| named(first)).unwrap_or_default();
        if other != module && is_module(&other) && !may.contains(&other.as_str()) {
            faults.push(format!("{}: imports crate::{}: {why}", source.path, path.join("::")));
        }
    }
    faults.sort();
    faults.dedup();
    faults
}

/// Returns names of other crates, and calls that connect, in files where they are not allowed.
fn restricted_name_faults(source: &SourceFile) -> Vec<String> {
    let code = without_tests(&code(&source.text)).0;
    let within = |places: &[&str]| {
        let at = source.path.trim_end_matches(".rs");
        places.iter().any(|p| at == *p || source.path.starts_with(&format!("{p}/")))
    };
    let mut faults = Vec::new();
    for RestrictedName(name, places, why) in RESTRICTED_NAMES {
        if !within(places) && names_path(&code, name) {
            faults.push(format!("{}: names {name}, which only {} may: {why}", source.path, places.join(", ")));
        }
    }
    for call in CONNECTS {
        let calls = code.match_indices(call).any(|(at, _)| !code[..at].ends_with(is_word));
        if calls && !within(MAY_CONNECT) {
            faults.push(format!(
                "{}: calls {call}: outgoing connections go through the guard in parallax-dial",
                source.path
            ));
        }
    }
    faults
}

/// Returns the module path of a file below `src/`: `http/api/current_key.rs` is `[http, api, current_key]`.
fn module_path(below: &str) -> Vec<String> {
    let mut parts: Vec<String> = below.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    if parts.last().is_some_and(|last| last == "mod" || (parts.len() == 1 && last == "lib")) {
        parts.pop();
    }
    parts
}

/// Returns every path that the code names below `head`, as in `crate::`, without the head.
fn paths_below(head: &str, code: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices(head) {
        if !code[..at].ends_with(is_word) && !code[..at].ends_with('$') {
            expand(&code[at + head.len()..], &mut Vec::new(), &mut found);
        }
    }
    found
}

/// Returns every path from the crate's root that the code names, by `crate::` or enough `super::`, without `crate`.
fn crate_paths(code: &str, depth: usize) -> Vec<Vec<String>> {
    let mut found = paths_below("crate::", code);
    let mut from = 0;
    while let Some(at) = code[from..].find("super::").map(|at| at + from) {
        let mut end = at;
        let mut steps = 0;
        while code[end..].starts_with("super::") {
            end += "super::".len();
            steps += 1;
        }
        if steps >= depth && !code[..at].ends_with(is_word) {
            expand(&code[end..], &mut Vec::new(), &mut found);
        }
        from = end;
    }
    found
}

/// Expands `a::{b, c::d}` into the paths `a::b` and `a::c::d`; returns how many bytes of `text` it took.
fn expand(text: &str, before: &mut Vec<String>, found: &mut Vec<Vec<String>>) -> usize {
    let start = text.len() - text.trim_start().len();
    let rest = &text[start..];
    if let Some(group) = rest.strip_prefix('{') {
        let mut at = start + 1;
        let mut inner = group;
        loop {
            let took = expand(inner, before, found);
            // Skips parts that belong to no path: `as name`, blanks.
            let stop = inner[took..].find([',', '}']).map_or(inner.len(), |stop| took + stop);
            at += stop + 1;
            if !inner[stop..].starts_with(',') {
                return at.min(text.len());
            }
            inner = &inner[stop + 1..];
        }
    }
    let word = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
    if word == 0 {
        if !before.is_empty() {
            found.push(before.clone());
        }
        return start;
    }
    before.push(rest[..word].to_owned());
    let took = match rest[word..].strip_prefix("::") {
        Some(inner) => word + 2 + expand(inner, before, found),
        None => {
            found.push(before.clone());
            word
        }
    };
    before.pop();
    start + took
}

/// Returns true if the code names a crate, or a module in it, as in `parallax_store::disk`.
fn names_path(code: &str, name: &str) -> bool {
    match name.split_once("::") {
        None => names_crate(code, name),
        Some((head, module)) => paths_below(&format!("{head}::"), code).iter().any(|path| path[0] == module),
    }
}

/// Returns true if the code names the crate `name` at the head of a path.
fn names_crate(code: &str, name: &str) -> bool {
    code.match_indices(name).any(|(at, _)| {
        let (before, after) = (&code[..at], code[at + name.len()..].trim_start());
        // `::name` is a path from the root of all crates.
        let before = before.strip_suffix("::").filter(|before| !before.ends_with(is_word)).unwrap_or(before);
        let head = !before.ends_with(is_word) && !before.ends_with('.') && !before.ends_with("::");
        head && (after.starts_with("::") || (before.trim_end().ends_with("use") && after.starts_with([';', 'a'])))
    })
}

#[cfg(test)]
mod checker {
    use super::*;

    fn faults(path: &str, text: &str) -> Vec<String> {
        let source = SourceFile { path: path.into(), text: text.into() };
        [import_faults(&source), restricted_name_faults(&source)].concat()
    }

    #[test]
    fn a_forbidden_import_is_found_with_its_reason() {
        let found = faults("coordinator/web/src/views/page.rs", "use crate::{views::frame::Frame, http::server};\n");
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("crate::http::server") && found[0].contains("without a service"));
        assert_eq!(faults("coordinator/web/src/http/page.rs", "use crate::views::frame::Frame;\n").len(), 0);
        assert_eq!(faults("coordinator/src/admin/mod.rs", "use crate::app::start;\n").len(), 1);
        assert_eq!(faults("coordinator/src/cli/mod.rs", "use crate::app::start;\n").len(), 0);
    }

    #[test]
    fn nested_groups_inline_paths_and_climbing_are_followed() {
        let nested = "use crate::{\n    consumers::{Read, alerts::{Store, open as o}},\n    deliver::Deliverer,\n};";
        assert_eq!(faults("coordinator/notify/src/render/mail.rs", nested).len(), 4);
        assert_eq!(faults("coordinator/notify/src/consumers/mod.rs", "fn f() { crate::deliver::go() }").len(), 1);
        assert_eq!(faults("coordinator/notify/src/consumers/pages.rs", "use super::super::deliver::go;").len(), 1);
        assert_eq!(faults("coordinator/notify/src/consumers/pages.rs", "use super::deliver;").len(), 0);
    }

    #[test]
    fn names_are_found_outside_their_home_only() {
        assert_eq!(faults("coordinator/store/src/disk/mod.rs", "use sled::Db;").len(), 0);
        assert_eq!(faults("coordinator/store/src/memory.rs", "fn f(db: &sled::Db) {}").len(), 1);
        assert_eq!(faults("coordinator/store/src/memory.rs", "fn f(db: &::sled::Db) {}").len(), 1);
        assert_eq!(faults("coordinator/store/src/memory.rs", "use ::sled::Db;").len(), 1);
        assert_eq!(faults("coordinator/store/src/memory.rs", "use other::sled::Db;").len(), 0);
        assert_eq!(faults("coordinator/src/up.rs", "use parallax_agent as agent;").len(), 0);
        assert_eq!(faults("coordinator/src/app.rs", "use parallax_agent;").len(), 1);
        assert_eq!(faults("agent/src/probe/tcp.rs", "TcpStream::connect(at).await").len(), 1);
        assert_eq!(faults("agent/src/probe/tcp.rs", "// sled::open\nlet warped = 1;").len(), 0);
        let engine = "use parallax_store::{Batch, disk::DiskOptions};";
        assert_eq!(faults("coordinator/service/src/context.rs", engine).len(), 1);
        assert_eq!(faults("coordinator/src/app/options.rs", engine).len(), 0);
    }

    #[test]
    fn tests_may_reach_further_and_new_modules_must_be_entered() {
        let text = "#[cfg(test)]\nmod tests {\n    use crate::http::x;\n}\n";
        assert_eq!(faults("coordinator/web/src/views/page.rs", text).len(), 0);
        assert!(faults("coordinator/src/cellar/mod.rs", "")[0].contains("no line in the table"));
    }
}
