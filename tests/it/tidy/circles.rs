//! No import circles among the files of a crate: what needs each other is one thing, or has a part that both need.

use std::collections::{BTreeMap, BTreeSet};

use super::module_tree::{FileUse, ModuleTree};
use super::source::root;

/// Files that each file needs, with the names that it takes from them.
type Arrows = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

#[test]
fn no_files_of_a_crate_import_each_other_in_a_circle() {
    let read = |file: &str| std::fs::read_to_string(root().join(file)).ok();
    let manifest: toml::Table = read("Cargo.toml").expect("the workspace has a manifest").parse().expect("it is TOML");
    let members = manifest["workspace"]["members"].as_array().expect("members are a list");
    let mut found = Vec::new();
    for member in members.iter().map(|member| member.as_str().expect("a member is a path")) {
        let roots = [format!("{member}/src/lib.rs"), format!("{member}/src/main.rs")];
        let crate_root = roots.iter().find(|file| read(file).is_some()).expect("every member has a root file");
        found.extend(circles(&ModuleTree::read(crate_root, &read)));
    }
    assert!(found.is_empty(), "move what both sides need into a file below them:\n{}", found.join("\n"));
}

/// Returns each group of files that need each other, with its arrows and the names that tie it.
fn circles(tree: &ModuleTree) -> Vec<String> {
    let mut arrows = Arrows::new();
    for FileUse { from, to, name } in tree.file_uses() {
        arrows.entry(from).or_default().entry(to).or_default().insert(name);
    }
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        arrows.keys().map(|file| (file.as_str(), reachable(&arrows, file))).collect();
    let is_reached = |from: &str, to: &str| reached.get(from).is_some_and(|files| files.contains(to));
    let mut groups = BTreeSet::new();
    for file in arrows.keys().filter(|file| is_reached(file, file)) {
        groups.insert(
            arrows.keys().filter(|other| is_reached(file, other) && is_reached(other, file)).collect::<Vec<_>>(),
        );
    }
    groups.iter().map(|group| description(&arrows, group)).collect()
}

/// Returns the files that a file needs, directly or by others.
fn reachable<'a>(arrows: &'a Arrows, file: &str) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    let mut waiting = vec![file];
    while let Some(file) = waiting.pop() {
        for next in arrows.get(file).into_iter().flat_map(BTreeMap::keys) {
            if found.insert(next.as_str()) {
                waiting.push(next);
            }
        }
    }
    found
}

fn description(arrows: &Arrows, group: &[&String]) -> String {
    let mut lines = vec![format!("circle of {} files", group.len())];
    for from in group {
        for (to, names) in arrows[*from].iter().filter(|(to, _)| group.contains(to)) {
            lines.push(format!("  {from} -> {to}: {}", names.iter().cloned().collect::<Vec<_>>().join(", ")));
        }
    }
    lines.join("\n")
}

mod checker {
    use super::*;

    /// Returns the circles of a made-up crate.
    fn circles_of(files: &[(&str, &str)]) -> Vec<String> {
        let files: BTreeMap<&str, &str> = files.iter().copied().collect();
        circles(&ModuleTree::read("src/lib.rs", &|file| {
            files.get(file.strip_prefix("src/")?).map(|&text| text.to_owned())
        }))
    }

    #[test]
    fn a_circle_of_two_is_found_with_its_names() {
        let a = "use crate::b::{self, Second};\npub struct First(Second);\nfn f() { b::help() }";
        let b = "pub struct Second;\npub fn help() { let _: Option<super::a::First> = None; }";
        let found = circles_of(&[("lib.rs", "mod a;\nmod b;"), ("a.rs", a), ("b.rs", b)]);
        assert_eq!(found, ["circle of 2 files\n  src/a.rs -> src/b.rs: Second, help\n  src/b.rs -> src/a.rs: First"]);
        let one_way = "pub struct Second;\npub fn help() {}";
        assert_eq!(circles_of(&[("lib.rs", "mod a;\nmod b;"), ("a.rs", a), ("b.rs", one_way)]), [""; 0]);
    }

    #[test]
    fn a_re_export_leads_to_the_file_of_the_definition() {
        let lib = "mod a;\npub mod shop;";
        let shop = "mod shelf;\nmod till;\npub use self::shelf::Shelf as Rack;\npub use till::*;";
        let till = "pub struct Till;";
        let a = "use crate::shop::{Rack, Till};\npub struct Part;";
        let shelf = "use crate::a::Part;\npub struct Shelf;";
        let files = [("lib.rs", lib), ("shop/mod.rs", shop), ("shop/shelf.rs", shelf), ("shop/till.rs", till)];
        let found = circles_of(&[&files[..], &[("a.rs", a)]].concat());
        assert_eq!(
            found,
            ["circle of 2 files\n  src/a.rs -> src/shop/shelf.rs: Shelf\n  src/shop/shelf.rs -> src/a.rs: Part"]
        );
        let found = circles_of(&[&files[..], &[("a.rs", "use crate::shop::Till;\npub struct Part;")]].concat());
        assert_eq!(found, [""; 0], "the re-export itself ties nothing");
    }

    #[test]
    fn a_module_and_a_function_may_share_a_name() {
        let lib = "mod fetch;\nmod shop;";
        let fetch = "pub fn fetch() { crate::shop::sales() }\npub struct Page;";
        let shop = "mod sales;\npub use sales::sales;";
        let sales = "use crate::fetch::{self, fetch};\npub fn sales() { fetch(); let _ = fetch::Page; }";
        let files = [("lib.rs", lib), ("fetch.rs", fetch), ("shop.rs", shop), ("shop/sales.rs", sales)];
        let tied = "circle of 2 files\n  src/fetch.rs -> src/shop/sales.rs: sales\n  \
                    src/shop/sales.rs -> src/fetch.rs: Page, fetch";
        assert_eq!(circles_of(&files), [tied]);
    }

    #[test]
    fn paths_in_macros_and_inline_modules_count() {
        let a = "pub fn f() { println!(\"{}\", crate::b::TEXT); }";
        let b = "mod inner {\n    pub fn g() { super::super::a::f() }\n}\npub const TEXT: &str = \"crate::c::x\";";
        let found = circles_of(&[("lib.rs", "mod a;\nmod b;"), ("a.rs", a), ("b.rs", b)]);
        assert_eq!(found, ["circle of 2 files\n  src/a.rs -> src/b.rs: TEXT\n  src/b.rs -> src/a.rs: f"]);
    }

    #[test]
    fn paths_in_strings_of_attributes_count() {
        let a = "use crate::b;\npub struct First {\n    #[serde(default, deserialize_with = \"b::read\")]\n    \
                 #[schemars(with = \"Option<b::Second>\")]\n    x: u8,\n}";
        let b = "#[error(\"see crate::a::First\")]\npub struct Second;\npub fn read() { crate::a::First }";
        let found = circles_of(&[("lib.rs", "mod a;\nmod b;"), ("a.rs", a), ("b.rs", b)]);
        assert_eq!(found, ["circle of 2 files\n  src/a.rs -> src/b.rs: Second, read\n  src/b.rs -> src/a.rs: First"]);
        let one_way = "#[error(\"see crate::a::First\")]\npub struct Second;\npub fn read() {}";
        assert_eq!(circles_of(&[("lib.rs", "mod a;\nmod b;"), ("a.rs", a), ("b.rs", one_way)]), [""; 0]);
    }

    #[test]
    fn what_only_tests_use_is_left_out() {
        let a = "pub struct First {\n    #[cfg(test)]\n    second: crate::b::Second,\n}\n\
                 #[cfg(test)]\nmod tests {\n    use crate::b::Second;\n}\n\
                 impl First {\n    #[cfg(test)]\n    fn new() -> crate::b::Second {}\n}\n\
                 #[cfg(test)]\nmod samples;";
        let b = "use crate::a::First;\npub struct Second(First);";
        let samples = "use crate::b::Second;";
        let files = [("lib.rs", "mod a;\nmod b;"), ("a.rs", a), ("a/samples.rs", samples), ("b.rs", b)];
        assert_eq!(circles_of(&files), [""; 0]);
    }

    #[test]
    fn a_submodule_may_use_its_ancestors() {
        let lib = "mod a;\npub struct Top;";
        let a = "mod part;\npub use part::Part;\npub struct Whole(Part);\nfn f() { part::help() }";
        let part = "use super::Whole;\nuse crate::Top;\npub struct Part(Option<Box<Whole>>, Top);\npub fn help() {}";
        assert_eq!(circles_of(&[("lib.rs", lib), ("a.rs", a), ("a/part.rs", part)]), [""; 0]);
        let sibling = "use crate::a::Whole;\npub fn f(_: Whole) {}";
        let files =
            [("lib.rs", "mod a;\nmod b;\npub struct Top;"), ("a.rs", a), ("a/part.rs", part), ("b.rs", sibling)];
        assert_eq!(circles_of(&files), [""; 0]);
        let part = "pub struct Part;\npub fn help() { crate::b::f }";
        let files = [files[0], files[1], ("a/part.rs", part), files[3]];
        let tied = "circle of 3 files\n  src/a.rs -> src/a/part.rs: help\n  src/a/part.rs -> src/b.rs: f\n  src/b.rs -> src/a.rs: Whole";
        assert_eq!(circles_of(&files), [tied]);
    }
}
