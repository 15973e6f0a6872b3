//! Settings: precedence, and the error of each invalid file.

use std::path::Path;

use super::*;

fn load(file: &str, environment: &[(&str, &str)]) -> Result<CoordinatorConfig, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("coordinator.toml");
    std::fs::write(&path, file).unwrap();
    let environment = environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    CoordinatorConfig::load(CoordinatorConfig::default(), Some(&path), environment, &Flags::default())
        .map_err(|error| error.to_string().replace(&format!("{}/", folder.path().display()), ""))
}

#[test]
fn flags_override_the_environment_and_the_environment_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("c.toml");
    std::fs::write(
        &file,
        "data = \"file\"\nlisten = \"127.0.0.1:1\"\nbase_url = \"https://a.example/\"\n[plans.pro]\ninterval_seconds = 10\n",
    )
    .unwrap();
    let environment = [("PARALLAX_LISTEN", "127.0.0.1:2"), ("PARALLAX_DATA", "environment"), ("HOME", "/")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
    let flags = Flags { data: Some("flag".into()), ..Flags::default() };
    let config = CoordinatorConfig::load(CoordinatorConfig::default(), Some(&file), environment, &flags).unwrap();
    assert_eq!(config.data, Path::new("flag"));
    assert_eq!(config.http.listen, "127.0.0.1:2".parse().unwrap());
    assert_eq!(config.http.base_url.as_deref(), Some("https://a.example"));
    assert_eq!(config.plans.interval_ms, [300_000, 60_000, 10_000]);
}

#[test]
fn a_wrong_file_is_refused_with_file_line_and_rule() {
    for (text, fault) in [
        (
            "data = \"d\"\nlissten = \"127.0.0.1:1\"\n",
            "coordinator.toml:2: lissten is not a setting; did you mean listen?",
        ),
        (
            "data = \"d\"\n\nconfirmation = \"perhaps\"\n",
            "coordinator.toml:3: confirmation must be \"other-network\" or \"repeat\", not \"perhaps\"",
        ),
        (
            "listen = \"nowhere\"",
            "coordinator.toml:1: listen must be an IP address and a port, such as 127.0.0.1:8080, not \"nowhere\"",
        ),
        ("listen = 8080", "coordinator.toml:1: listen must be a string in quotes"),
        ("mesh_listen = \"0.0.0.0:1\"", "coordinator.toml:1: mesh_listen is not a setting; did you mean mesh.listen?"),
        (
            "[plans.pro]\ninterval_seconds = 4",
            "coordinator.toml:2: plans.pro.interval_seconds must be a whole number from 5 to 86400, not \"4\"",
        ),
        (
            "[plans.pro]\ninterval_seconds = \"10\"",
            "coordinator.toml:2: plans.pro.interval_seconds must be a whole number",
        ),
        (
            "[plan.pro]\nmonitors = 4",
            "coordinator.toml:2: plan.pro.monitors is not a setting; did you mean plans.pro.monitors?",
        ),
        ("[logg]\n", "coordinator.toml:1: logg is not a setting; did you mean log?"),
        ("bogus_key = 1", "coordinator.toml:1: bogus_key is not a setting"),
        (
            "[log]\nfilter = \"parallax=loud\"",
            "coordinator.toml:2: log.filter must be a level (error, warn, info, debug, trace) or a list of \
             target=level, not \"parallax=loud\"",
        ),
        ("[log]\nformat = \"xml\"", "coordinator.toml:2: log.format must be \"text\" or \"json\", not \"xml\""),
        (
            "base_url = \"https://a.example/status\"",
            "coordinator.toml:1: base_url must be http:// or https:// with a host and nothing after it, \
             not \"https://a.example/status\"",
        ),
        (
            "root_domain = \"Example\"",
            "coordinator.toml:1: root_domain must be a domain name in lower case, such as status.example.com, \
             not \"Example\"",
        ),
        ("[deliver]\nallow_private = \"yes\"", "coordinator.toml:2: deliver.allow_private must be true or false"),
        (
            "[domains]\nresolvers = \"127.0.0.1\"",
            "coordinator.toml:2: domains.resolvers must be 1 to 8 IP addresses with ports, separated by spaces, \
             such as 127.0.0.1:53, not \"127.0.0.1\"",
        ),
        (
            "[acme]\ndirectory = \"http://ca.example/\"",
            "coordinator.toml:2: acme.directory must be an https:// URL of at most 2048 characters, \
             not \"http://ca.example/\"",
        ),
        ("[tls]\nlisten = \"127.0.0.1:0\"", "tls.certificate is required with tls.listen unless acme.enabled is true"),
        (
            "base_url = \"http://a.example\"\n[tls]\nlisten = \"127.0.0.1:0\"\ncertificate = \"c\"\nkey = \"k\"",
            "base_url must start with https:// if tls.listen is set",
        ),
        ("[tls]\nkey = \"k.pem\"", "tls.certificate is required with tls.key"),
        ("[tls]\ncertificate = \"c.pem\"", "tls.key is required with tls.certificate"),
        ("[acme]\nenabled = true", "tls.listen is required with acme.enabled"),
        ("data = \"\"", "coordinator.toml:1: data must be a folder, not \"\""),
        ("[mesh]\nname = \"\"", "coordinator.toml:2: mesh.name must be 1 to 60 characters, not \"\""),
        (
            "lissten = 1\nlisten = \"x\"",
            "coordinator.toml:1: lissten is not a setting; did you mean listen?\n\
             coordinator.toml:2: listen must be an IP address and a port, such as 127.0.0.1:8080, not \"x\"",
        ),
    ] {
        assert_eq!(load(text, &[]).unwrap_err(), fault, "{text}");
    }
    let fault = load("data = \"d\"\nlisten = \n", &[]).unwrap_err();
    assert!(fault.starts_with("coordinator.toml:2: "), "{fault}");
    let fault = load("data = \"d\"\ndata = \"e\"\n", &[]).unwrap_err();
    assert!(fault.starts_with("coordinator.toml:2: "), "{fault}");
}

#[test]
fn an_unknown_variable_is_refused_and_foreign_ones_are_ignored() {
    let fault = load("", &[("PARALLAX_LISTEN", "x")]).unwrap_err();
    assert!(fault.starts_with("PARALLAX_LISTEN must be an IP address"), "{fault}");
    let fault = load("", &[("PARALLAX_LISTENN", "127.0.0.1:1")]).unwrap_err();
    assert_eq!(fault, "PARALLAX_LISTENN is not a setting; did you mean PARALLAX_LISTEN?");
    assert!(load("", &[("PARALLAX_AGENT_DATA", "x"), ("PARALLAX_BIN_DIR", "x")]).is_ok());
}

#[test]
fn a_variable_can_name_a_file_with_the_value() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("url");
    std::fs::write(&path, "https://a.example\n").unwrap();
    let path = path.display().to_string();
    let config = load("", &[("PARALLAX_BASE_URL_FILE", &path)]).unwrap();
    assert_eq!(config.http.base_url.as_deref(), Some("https://a.example"));
    let fault = load("", &[("PARALLAX_BASE_URL_FILE", "/nowhere/at/all")]).unwrap_err();
    assert!(fault.starts_with("PARALLAX_BASE_URL_FILE names /nowhere/at/all: "), "{fault}");
}

#[test]
fn printed_settings_can_be_read_again() {
    let mut config = CoordinatorConfig::default();
    config.http.base_url = Some("https://a.example".to_owned());
    config.mesh.name = "a \"quoted\" name".to_owned();
    config.plans.interval_ms = [60_000, 10_000, 5_000];
    config.log.format = LogFormat::Json;
    config.deliver.allow_private = true;
    let printed = config.to_toml();
    assert_eq!(load(&printed, &[]), Ok(config), "{printed}");
    assert!(printed.contains("confirmation = \"other-network\""), "{printed}");
}

#[test]
fn a_missing_file_is_named() {
    let fault =
        CoordinatorConfig::load(CoordinatorConfig::default(), Some(Path::new("/nowhere.toml")), [], &Flags::default());
    assert!(fault.unwrap_err().to_string().starts_with("/nowhere.toml: "));
}

#[test]
fn the_operators_webhook_needs_a_secret_which_nothing_shows() {
    let hook = "[operator]\nmail = \"ops@example.com\"\nwebhook = \"https://ops.example/hook\"\n";
    let unsigned_fault = load(hook, &[]).unwrap_err();
    assert_eq!(unsigned_fault, "operator.webhook_secret is required with operator.webhook");
    let secret = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    let config = load(hook, &[("PARALLAX_OPERATOR_WEBHOOK_SECRET", secret)]).unwrap();
    assert_eq!(config.operator.webhook_secret.as_deref(), Some(secret));
    let printed = format!("{config:?}{}", config.to_toml());
    assert!(!printed.contains(secret) && printed.contains("ops@example.com"), "{printed}");
    for (setting, text) in [
        ("MAIL", "nobody"),
        ("WEBHOOK", "ftp://a.example"),
        ("WEBHOOK", "https://user@a.example"),
        ("WEBHOOK_SECRET", "whsec_c2hvcnQ="),
    ] {
        let fault = load(hook, &[(&format!("PARALLAX_OPERATOR_{setting}"), text)]).unwrap_err();
        assert!(fault.starts_with(&format!("PARALLAX_OPERATOR_{setting} must be")), "{fault}");
        assert_eq!(fault.contains(text), setting != "WEBHOOK_SECRET", "{fault}");
    }
}

#[test]
fn mail_is_off_unless_all_that_it_needs_is_set() {
    assert_eq!(load("", &[]).unwrap().mail, OutgoingMailConfig::default());
    let smtp = "[mail]\ntransport = \"smtp\"\nhost = \"mail.example\"\nfrom = \"Status <s@example.com>\"\n";
    let mail = load(smtp, &[]).unwrap().mail;
    assert_eq!((mail.port(), mail.tls), (587, MailTls::StartTls));
    let with = |more: &str| load(&format!("{smtp}{more}"), &[]).map(|config| config.mail.port());
    assert_eq!(with("tls = \"implicit\"\n"), Ok(465));
    assert_eq!(with("tls = \"none\"\n"), Ok(25));
    assert_eq!(with("tls = \"none\"\nport = 1025\n"), Ok(1025));
    let login = "username = \"u\"\npassword = \"secret\"\n";
    assert_eq!(with(login), Ok(587));
    assert_eq!(
        with(&format!("tls = \"none\"\n{login}")),
        Err("mail.tls must be \"starttls\" or \"implicit\" if a password is set".to_owned())
    );
    assert_eq!(with("username = \"u\"\n"), Err("mail.password must be set together with mail.username".to_owned()));
    for (file, fault) in [
        ("transport = \"smtp\"", "mail.host must be set with transport = \"smtp\""),
        ("transport = \"smtp\"\nhost = \"h\"", "mail.from must be set with transport = \"smtp\""),
        ("transport = \"folder\"", "mail.folder must be set with transport = \"folder\""),
        (
            "transport = \"sendmail\"",
            "coordinator.toml:2: mail.transport must be \"smtp\", \"folder\" or \"none\", not \"sendmail\"",
        ),
        (
            "host = \"h:25\\r\\nx\"",
            "coordinator.toml:2: mail.host must be a host name or an IP address, without a port, not \"h:25\\r\\nx\"",
        ),
        ("port = 0", "coordinator.toml:2: mail.port must be a whole number from 1 to 65535, not \"0\""),
        (
            "from = \"a@b.example\\r\\nBcc: x@y.example\"",
            "coordinator.toml:2: mail.from must be an email address, or a name and an address: Status \
             <status@example.com>, not \"a@b.example\\r\\nBcc: x@y.example\"",
        ),
        (
            "password = \"secret\\u0000\"",
            "coordinator.toml:2: mail.password must be 1 to 1000 bytes without control characters",
        ),
    ] {
        assert_eq!(load(&format!("[mail]\n{file}\n"), &[]).err().as_deref(), Some(fault), "{file}");
    }
}

#[test]
fn the_password_of_the_mail_server_is_shown_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    let password_file = folder.path().join("password");
    std::fs::write(&password_file, "pa55word\n").unwrap();
    let environment =
        [("PARALLAX_MAIL_USERNAME", "status"), ("PARALLAX_MAIL_PASSWORD_FILE", password_file.to_str().unwrap())];
    let config = load("", &environment).unwrap();
    assert_eq!(config.mail.password.as_deref(), Some("pa55word"));
    assert!(!format!("{config:?}{}", config.to_toml()).contains("pa55word"));
}
