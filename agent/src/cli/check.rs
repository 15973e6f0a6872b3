//! The command `check TYPE TARGET`: runs one check from this host and prints all its results.

use crate::attempt::{DEADLINE, attempt};
use crate::clock::Clock;
use crate::config::Config;
use crate::error::Error;
use crate::out::say;
use crate::probe::Kept;
use clap::{Args, ValueEnum};
use parallax_protocol::check::{
    CertificateCheck, CheckSpec, ComponentCheck, DnsCheck, DomainCheck, Header, HttpCheck, KeywordMode,
    Method, PingCheck, RecordType, TcpCheck,
};
use parallax_protocol::result::{AddressClass, Failure, Outcome, Phases, Report};
use parallax_protocol::text::Secret;
use std::fmt::Write as _;
use std::process::ExitCode;

/// Arguments of the check.
#[derive(Debug, Args)]
pub(super) struct CheckArgs {
    /// Check type
    #[arg(value_enum)]
    kind: Kind,
    /// A URL (http, component), HOST:PORT (tcp), HOST or HOST:PORT (certificate), or a host name
    target: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// http: request method
    #[arg(long, default_value = "GET", value_parser = method)]
    method: Method,
    /// http: request header NAME:VALUE; may be repeated
    #[arg(long = "header", value_name = "NAME:VALUE", value_parser = header)]
    headers: Vec<Header>,
    /// http: request body
    #[arg(long)]
    body: Option<String>,
    /// http: exact expected status, instead of any 2xx
    #[arg(long, value_name = "STATUS", value_parser = clap::value_parser!(u16).range(100..=599))]
    expect_status: Option<u16>,
    /// http: text that the body must contain
    #[arg(long)]
    keyword: Option<String>,
    /// http: the body must not contain the keyword
    #[arg(long)]
    absent: bool,
    /// dns: record type
    #[arg(long, default_value = "A", value_parser = record)]
    record: RecordType,
    /// dns: text that an answer must contain
    #[arg(long, value_name = "TEXT")]
    expect: Option<String>,
    /// certificate, domain: days before expiry from which the check fails
    #[arg(long, value_name = "DAYS")]
    warn_days: Option<u16>,
    /// component: name of one component
    #[arg(long, value_name = "NAME")]
    component: Option<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Kind {
    Http,
    Tcp,
    Dns,
    Ping,
    Certificate,
    Domain,
    Component,
}

/// Runs the check and prints its report.
pub(super) async fn check(config: &Config, args: CheckArgs) -> Result<ExitCode, Error> {
    let json = args.json;
    let spec = spec(args)?;
    let net = crate::net(config)?.with_pages_tried_at_once();
    let done = attempt(&spec, &Kept::default(), &net, &Clock::new(0), DEADLINE, std::future::ready(())).await;
    let product = match &spec {
        CheckSpec::Component(check) => net.vendor_product(&check.vendor_url),
        _ => None,
    };
    say(&if json { as_json(&spec, &done.report, product) } else { as_text(&spec, &done.report, product) })?;
    Ok(match done.report.outcome {
        Outcome::Passed => ExitCode::SUCCESS,
        // The same code as for any other invalid argument.
        Outcome::Failed(Failure::BadTarget { .. }) => ExitCode::from(2),
        Outcome::Failed(_) => ExitCode::from(3),
        Outcome::Inconclusive(_) | Outcome::Pending => ExitCode::from(1),
    })
}

fn spec(args: CheckArgs) -> Result<CheckSpec, Error> {
    let target = args.target;
    Ok(match args.kind {
        Kind::Http => CheckSpec::Http(HttpCheck {
            url: if target.contains("://") { target } else { format!("https://{target}") },
            method: args.method,
            headers: args.headers,
            body: args.body.map(Secret::new),
            expect_status: args.expect_status,
            keyword: args.keyword,
            keyword_mode: if args.absent { KeywordMode::Absent } else { KeywordMode::Present },
        }),
        Kind::Tcp => {
            let (host, port) = host_and_port(&target).ok_or_else(|| bad_target("must be HOST:PORT"))?;
            CheckSpec::Tcp(TcpCheck { host, port })
        }
        Kind::Dns => CheckSpec::Dns(DnsCheck { host: target, record: args.record, expect: args.expect }),
        Kind::Ping => CheckSpec::Ping(PingCheck { host: target }),
        Kind::Certificate => {
            let (host, port) = host_and_port(&target).unwrap_or((target, 443));
            CheckSpec::Certificate(CertificateCheck { host, port, warn_days: args.warn_days.unwrap_or(14) })
        }
        Kind::Domain => {
            CheckSpec::Domain(DomainCheck { host: target, warn_days: args.warn_days.unwrap_or(30) })
        }
        Kind::Component => {
            CheckSpec::Component(ComponentCheck { vendor_url: target, component: args.component })
        }
    })
}

/// Parses `HOST:PORT` or `[ADDRESS]:PORT`.
fn host_and_port(target: &str) -> Option<(String, u16)> {
    let (host, port) = target.rsplit_once(':')?;
    let port = port.parse().ok().filter(|&port: &u16| port > 0)?;
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let host = bare.or_else(|| Some(host).filter(|host| !host.contains(':')))?;
    (!host.is_empty()).then(|| (host.to_owned(), port))
}

fn bad_target(rule: &str) -> Error {
    Error::Setting { field: "TARGET".into(), rule: rule.into() }
}

fn method(text: &str) -> Result<Method, String> {
    [Method::Get, Method::Head, Method::Post, Method::Put, Method::Patch, Method::Delete]
        .into_iter()
        .find(|method| method.token().eq_ignore_ascii_case(text))
        .ok_or_else(|| "must be GET, HEAD, POST, PUT, PATCH or DELETE".into())
}

fn record(text: &str) -> Result<RecordType, String> {
    [RecordType::A, RecordType::Aaaa, RecordType::Cname, RecordType::Mx, RecordType::Txt, RecordType::Ns]
        .into_iter()
        .find(|record| record.name().eq_ignore_ascii_case(text))
        .ok_or_else(|| "must be A, AAAA, CNAME, MX, TXT or NS".into())
}

fn header(text: &str) -> Result<Header, String> {
    let (name, value) = text.split_once(':').ok_or("must be NAME:VALUE")?;
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
        return Err("name must consist of letters, digits and hyphens".into());
    }
    if value.chars().any(char::is_control) {
        return Err("value must not contain control characters".into());
    }
    Ok(Header { name: name.into(), value: Secret::new(value.trim()) })
}

/// Returns the outcome's name and reason.
fn words(spec: &CheckSpec, outcome: &Outcome) -> (&'static str, Option<String>) {
    match outcome {
        Outcome::Passed => ("passed", None),
        Outcome::Failed(failure @ Failure::AddressNotAllowed { class }) => {
            let flags = match class {
                // Addresses that the operator has excluded stay excluded.
                AddressClass::Own => "use --allow-own-host to check this host",
                AddressClass::Loopback => "use --allow-private --allow-own-host to check such addresses",
                _ => "use --allow-private to check such addresses",
            };
            ("failed", Some(format!("{failure} ({flags})")))
        }
        Outcome::Failed(failure) => ("failed", Some(failure.to_string())),
        Outcome::Inconclusive(fault) => ("inconclusive", Some(fault.words(spec.kind()))),
        Outcome::Pending => ("pending", None),
    }
}

fn phases(phases: &Phases) -> [(&'static str, Option<u32>); 5] {
    [
        ("dns", phases.dns_us),
        ("connect", phases.connect_us),
        ("tls", phases.tls_us),
        ("firstByte", phases.first_byte_us),
        ("transfer", phases.transfer_us),
    ]
}

fn as_text(spec: &CheckSpec, report: &Report, product: Option<&str>) -> String {
    let (word, reason) = words(spec, &report.outcome);
    let mut text = reason.map_or_else(|| word.to_owned(), |reason| format!("{word}: {reason}"));
    text.push('\n');
    let mut line = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "  {name:<11}{value}");
        }
    };
    line("latency", report.latency_ms.map(|ms| format!("{ms} ms")));
    for (name, us) in phases(&report.phases) {
        line(name, us.map(|us| format!("{}.{:03} ms", us / 1000, us % 1000)));
    }
    line("status", report.status_code.map(|code| code.to_string()));
    line("address", report.address.map(|address| address.to_string()));
    line("expires", report.expires_ms.map(iso));
    line("page", product.map(str::to_owned));
    if let Some(vendor) = &report.vendor {
        line("vendor", Some(format!("{:?} ({})", vendor.state, vendor.word)));
        line("incident", vendor.incident.as_ref().map(ToString::to_string));
    }
    text
}

fn as_json(spec: &CheckSpec, report: &Report, product: Option<&str>) -> String {
    let (word, reason) = words(spec, &report.outcome);
    let phases: serde_json::Map<String, serde_json::Value> = phases(&report.phases)
        .into_iter()
        .filter_map(|(name, us)| Some((format!("{name}Us"), us?.into())))
        .collect();
    let vendor = report.vendor.as_ref().map(|vendor| {
        serde_json::json!({
            "state": format!("{:?}", vendor.state),
            "word": vendor.word.as_str(),
            "incident": vendor.incident.as_ref().map(|incident| incident.as_str()),
        })
    });
    let value = serde_json::json!({
        "type": spec.kind().name(),
        "outcome": word,
        "error": reason,
        "latencyMs": report.latency_ms,
        "phases": phases,
        "statusCode": report.status_code,
        "address": report.address,
        "expiresAt": report.expires_ms.map(iso),
        "page": product,
        "vendor": vendor,
    });
    format!("{value:#}")
}

fn iso(ms: i64) -> String {
    let time = chrono::DateTime::from_timestamp_millis(ms);
    time.map_or_else(|| ms.to_string(), |time| time.to_rfc3339_opts(chrono::SecondsFormat::Secs, true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_ports_are_told_apart() {
        assert_eq!(host_and_port("example.com:443"), Some(("example.com".into(), 443)));
        assert_eq!(host_and_port("[2001:db8::1]:80"), Some(("2001:db8::1".into(), 80)));
        for bad in ["example.com", "2001:db8::1", "example.com:0", ":80", "example.com:99999"] {
            assert_eq!(host_and_port(bad), None, "{bad}");
        }
    }

    fn ping() -> CheckSpec {
        CheckSpec::Ping(PingCheck { host: "h".into() })
    }

    #[test]
    fn a_report_reads_well_in_both_forms() {
        let mut report = Report::bare(Outcome::Failed(Failure::UnexpectedStatus { got: 503 }));
        report.latency_ms = Some(12);
        report.phases.dns_us = Some(1_250);
        report.status_code = Some(503);
        let text = as_text(&ping(), &report, None);
        assert_eq!(
            text,
            "failed: unexpected status 503\n  latency    12 ms\n  dns        1.250 ms\n  status     503\n"
        );
        let json: serde_json::Value = serde_json::from_str(&as_json(&ping(), &report, None)).unwrap();
        assert_eq!((&json["outcome"], &json["phases"]["dnsUs"]), (&"failed".into(), &1_250.into()));
    }

    #[test]
    fn a_refused_address_is_told_with_its_kind_and_the_way_round() {
        let refused = Failure::AddressNotAllowed { class: AddressClass::Loopback };
        let text = as_text(&ping(), &Report::bare(Outcome::Failed(refused)), None);
        assert_eq!(
            text,
            "failed: address not allowed: loopback (use --allow-private --allow-own-host to check such addresses)\n"
        );
    }

    #[test]
    fn headers_are_checked() {
        assert!(header("X-Key: v").is_ok_and(|header| header.value.reveal() == "v"));
        assert!(header("X Key: v").is_err());
        assert!(header("X-Key").is_err());
    }
}
