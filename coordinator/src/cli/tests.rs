//! Command lines: accepted forms and usage errors.

use clap::CommandFactory;
use clap::error::ErrorKind;

use super::*;

fn parse(line: &str) -> Result<Command, ErrorKind> {
    let arguments = std::iter::once("parallax").chain(line.split_whitespace());
    Cli::try_parse_from(arguments).map(|cli| cli.command).map_err(|error| error.kind())
}

#[test]
fn the_definitions_of_clap_are_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn every_command_line_is_parsed() {
    for line in [
        "up",
        "up --demo --data d --listen 127.0.0.1:0 --mesh-listen 127.0.0.1:0 --ready-file r",
        "up --region asia --network AS64500 --base-url https://a.example --root-domain status.example.com",
        "serve --config c.toml --admin-listen 127.0.0.1:9090 --ready-file r",
        "check-config --config c.toml",
        "agent invite --name fra1 --region europe --network AS64500 --valid-seconds 60 --data d --json",
        "agent list --json",
        "agent invitations --json",
        "agent revoke-invitation inv_1",
        "agent revoke fra1 --data d",
        "agent forget fra1",
        "account create --email a@example.com --plan pro --json",
        "account list",
        "account plan a@example.com free",
        "page create --account acc_1 --name Shop --slug shop --json",
        "page list --json",
        "key create --account acc_1 --name k --access write --page pg_1 --json",
        "key list",
        "key revoke key_1",
        "debug monitor mon_1 --data d --json",
    ] {
        assert!(parse(line).is_ok(), "{line}: {:?}", parse(line).unwrap_err());
    }
}

#[test]
fn wrong_usage_and_help_are_distinguished() {
    for (line, kind) in [
        ("no-such-command", ErrorKind::InvalidSubcommand),
        ("", ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand),
        ("--help", ErrorKind::DisplayHelp),
        ("--version", ErrorKind::DisplayVersion),
        ("up --region mars", ErrorKind::ValueValidation),
        ("up --demo --region asia", ErrorKind::ArgumentConflict),
        ("serve --listen nowhere", ErrorKind::ValueValidation),
        ("serve --base-url ftp://a.example", ErrorKind::ValueValidation),
        ("agent invite --name a --region europe", ErrorKind::MissingRequiredArgument),
        ("agent invite --name a --region europe --network n --valid-seconds 59", ErrorKind::ValueValidation),
        ("account create --email a@example.com --plan gold", ErrorKind::ValueValidation),
        ("key create --name k --access all", ErrorKind::InvalidValue),
        ("debug monitor", ErrorKind::MissingRequiredArgument),
        ("key revoke", ErrorKind::MissingRequiredArgument),
    ] {
        assert_eq!(parse(line).unwrap_err(), kind, "{line}");
    }
}

#[test]
fn the_commands_of_the_readmes_are_parsed() {
    let texts = [include_str!("../../../README.md"), include_str!("../../../deploy/README.md")];
    let mut counts = [0, 0];
    for (command, is_line) in texts.into_iter().flat_map(readme_commands) {
        let arguments = shlex::split(&command).expect(&command);
        match Cli::try_parse_from(&arguments) {
            Ok(_) => {}
            // Prose may name a command without its arguments.
            Err(error) if !is_line && is_unfinished(error.kind()) => {}
            Err(error) => panic!("{command}: {error}"),
        }
        counts[usize::from(is_line)] += 1;
    }
    assert!(counts[0] >= 10 && counts[1] >= 15, "{counts:?}");
}

fn is_unfinished(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::MissingRequiredArgument | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand)
}

/// Returns the commands after `parallax`, its alias `px` and `cargo run` in a README, and whether each is a line of
/// a code block or part of a sentence.
fn readme_commands(text: &str) -> Vec<(String, bool)> {
    let mut commands = Vec::new();
    for (number, section) in text.split("```").enumerate() {
        if number % 2 == 0 {
            let spans = section.split('`').skip(1).step_by(2).filter(|span| !span.contains('…'));
            commands.extend(spans.filter_map(command).map(|command| (command, false)));
        } else if let Some(block) = section.strip_prefix("sh\n") {
            let block = block.replace("\\\n", " ");
            commands.extend(block.lines().filter_map(command).map(|command| (command, true)));
        }
    }
    commands
}

/// Returns the `parallax` command in a line, without pipes and comments.
fn command(line: &str) -> Option<String> {
    let line = line.split(" #").next()?.trim().replace('\n', " ");
    let after = |mark: &str| line.split_once(mark).map(|(_, rest)| rest.to_owned());
    let rest = line.strip_prefix("px ").or_else(|| line.strip_prefix("parallax ")).map(str::to_owned);
    let rest = rest.or_else(|| after(" coordinator parallax ")).or_else(|| after("cargo run --release -- "))?;
    let rest = rest.split('|').next()?.replace("$2", "europe");
    Some(format!("parallax {rest}"))
}

#[test]
fn flags_reach_the_settings() {
    let Command::Serve { settings, .. } =
        parse("serve --data d --listen 127.0.0.1:0 --base-url https://a.example/").unwrap()
    else {
        panic!("another command")
    };
    let config = CoordinatorConfig::load(CoordinatorConfig::default(), None, [], &settings.flags()).unwrap();
    assert_eq!((config.data, config.http.listen.port()), (PathBuf::from("d"), 0));
    assert_eq!(config.http.base_url.as_deref(), Some("https://a.example"));
}
