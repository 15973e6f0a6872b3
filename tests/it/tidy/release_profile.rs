//! The release profile: names packages that exist, and none that has a program, since an override for such a package makes
//! cargo leave its symbols in.

use super::source::root;

#[test]
fn only_libraries_have_a_release_override() {
    let read = |file: &str| std::fs::read_to_string(root().join(file)).unwrap_or_default();
    let workspace: toml::Table = read("Cargo.toml").parse().expect("the workspace has a manifest");
    let overrides = workspace["profile"]["release"]["package"].as_table().expect("the profile has overrides");
    assert!(overrides.len() > 10, "the overrides are found");
    let lock = read("Cargo.lock");
    for name in overrides.keys() {
        assert!(lock.contains(&format!("\nname = \"{name}\"\n")), "{name} is no package of this workspace");
    }
    let members = workspace["workspace"]["members"].as_array().expect("members are a list");
    for member in members.iter().filter_map(|member| member.as_str()) {
        let manifest: toml::Table = read(&format!("{member}/Cargo.toml")).parse().expect("a member has a manifest");
        let name = manifest["package"]["name"].as_str().expect("a package has a name");
        let has_program = manifest.contains_key("bin") || root().join(member).join("src/main.rs").is_file();
        assert!(!(has_program && overrides.contains_key(name)), "{name} has a program: leave it to the default");
    }
}
