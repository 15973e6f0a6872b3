//! Output of commands: a full disk behind standard output is an error, a closed pipe is not.

use std::fs::File;
use std::io::pipe;
use std::process::{Command, Output, Stdio};

use parallax_tests::process::binary;
use tempfile::TempDir;

/// Commands that print and exit, with the exit code of a successful run.
const COMMANDS: [(&str, &[&str], i32); 10] = [
    ("parallax", &["--help"], 0),
    ("parallax", &["--version"], 0),
    ("parallax", &["help", "agent"], 0),
    ("parallax", &["check-config", "--data", "DATA"], 0),
    ("parallax", &["account", "create", "--email", "EMAIL", "--data", "DATA"], 0),
    ("parallax", &["account", "list", "--json", "--data", "DATA"], 0),
    ("parallax", &["verify", "--data", "DATA"], 0),
    ("parallax-agent", &["--help"], 0),
    ("parallax-agent", &["join", "--help"], 0),
    ("parallax-agent", &["check", "tcp", "127.0.0.1:1", "--allow-private", "--allow-own-host", "--data", "DATA"], 3),
];

/// Runs a command, with another account name each time.
fn run(folder: &TempDir, name: &str, words: &[&str], number: usize, out: Stdio) -> Output {
    let data = folder.path().join("data").display().to_string();
    let email = format!("a{number}@example.com");
    let words = words.iter().map(|word| word.replace("DATA", &data).replace("EMAIL", &email));
    Command::new(binary(name)).args(words).stdin(Stdio::null()).stdout(out).output().unwrap()
}

#[test]
fn output_that_can_not_be_written_is_a_fault_of_every_command() {
    let folder = TempDir::new().unwrap();
    for (number, (name, words, well)) in COMMANDS.into_iter().enumerate() {
        let told = run(&folder, name, words, number * 3, Stdio::piped());
        assert_eq!(told.status.code(), Some(well), "{name} {words:?}: {told:?}");
        assert!(!told.stdout.is_empty(), "{name} {words:?}");

        let full = File::options().write(true).open("/dev/full").unwrap();
        let lost = run(&folder, name, words, number * 3 + 1, full.into());
        let said = String::from_utf8_lossy(&lost.stderr).into_owned();
        assert_eq!(lost.status.code(), Some(1), "{name} {words:?}: {said}");
        assert!(
            said.contains(&format!("{name}: ")) && said.contains("could not be written")
                || said.contains("can't be written"),
            "{said}"
        );
        assert!(!said.contains("panicked"), "{said}");

        let (reader, writer) = pipe().unwrap();
        drop(reader);
        let unread = run(&folder, name, words, number * 3 + 2, writer.into());
        let said = String::from_utf8_lossy(&unread.stderr);
        assert_eq!(unread.status.code(), Some(well), "{name} {words:?}: {said}");
        assert!(!said.contains("written"), "{said}");
    }
}

#[test]
fn a_trial_whose_key_can_not_be_shown_ends() {
    let folder = TempDir::new().unwrap();
    let full = File::options().write(true).open("/dev/full").unwrap();
    let words = ["up", "--data", "DATA", "--listen", "127.0.0.1:0", "--mesh-listen", "127.0.0.1:0"];
    let ended = run(&folder, "parallax", &words, 0, full.into());
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(1), "{said}");
    assert!(said.contains("standard output can't be written"), "{said}");
}

#[test]
fn what_is_printed_to_be_pasted_begins_with_the_path_of_the_program() {
    let folder = TempDir::new().unwrap();
    let program = binary("parallax");
    let ended = run(&folder, "parallax", &["restore", "newest", "--data", "DATA"], 0, Stdio::piped());
    assert_eq!(ended.status.code(), Some(1));
    // A damaged store names the command that restores it.
    run(&folder, "parallax", &["account", "create", "--email", "EMAIL", "--data", "DATA"], 0, Stdio::piped());
    std::fs::write(folder.path().join("data/store/sled/db"), "").unwrap();
    let ended = run(&folder, "parallax", &["account", "list", "--data", "DATA"], 0, Stdio::piped());
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(said.contains(&format!("\n  {} restore ", program.display())), "{said}");
}
