//! The command `check TYPE TARGET`: runs one check from this host and prints all its results.

use crate::check_attempt::{DEADLINE, run_with_deadline};
use crate::clock::AgentClock;
use crate::config::AgentConfig;
use crate::console::print_line;
use crate::error::AgentError;
use crate::probe::CheckCache;
use clap::{Args, ValueEnum};
use parallax_protocol::check::{
    WireCertificateCheck, WireCheckSpec, WireComponentCheck, WireDnsCheck, WireDomainCheck, WireHeader, WireHttpCheck,
    WireKeywordMode, WireMethod, WirePingCheck, WireRecordType, WireTcpCheck,
};
use parallax_protocol::result::{AddressClass, ProbeReport, WireFailure, WireOutcome, WirePhases};
use parallax_protocol::text::SecretText;
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
    method: WireMethod,
    /// http: request header NAME:VALUE; may be repeated
    #[arg(long = "header", value_name = "NAME:VALUE", value_parser = header)]
    headers: Vec<WireHeader>,
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
    record: WireRecordType,
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
pub(super) async fn check(config: &AgentConfig, args: CheckArgs) -> Result<ExitCode, AgentError> {
    let json = args.json;
    let spec = spec(args)?;
    let probes = crate::probes(config)?.with_full_page_detection();
    let done = run_with_deadline(
        &spec,
        &CheckCache::default(),
        &probes,
        &AgentClock::new(0),
        DEADLINE,
        std::future::ready(()),
    )
    .await;
    let product = match &spec {
        WireCheckSpec::Component(check) => probes.vendor_product(&check.vendor_url),
        _ => None,
    };
    print_line(&if json { as_json(&spec, &done.report, product) } else { as_text(&spec, &done.report, product) })?;
    Ok(match done.report.outcome {
        WireOutcome::Passed => ExitCode::SUCCESS,
        // The same code as for any other invalid argument.
        WireOutcome::Failed(WireFailure::BadTarget { .. }) => ExitCode::from(2),
        WireOutcome::Failed(_) => ExitCode::from(3),
        WireOutcome::Inconclusive(_) | WireOutcome::Pending => ExitCode::from(1),
    })
}

fn spec(args: CheckArgs) -> Result<WireCheckSpec, AgentError> {
    let target = args.target;
    Ok(match args.kind {
        Kind::Http => WireCheckSpec::Http(WireHttpCheck {
            url: if target.contains("://") { target } else { format!("https://{target}") },
            method: args.method,
            headers: args.headers,
            body: args.body.map(SecretText::new),
            expect_status: args.expect_status,
            keyword: args.keyword,
            keyword_mode: if args.absent { WireKeywordMode::Absent } else { WireKeywordMode::Present },
        }),
        Kind::Tcp => {
            let (host, port) = host_and_port(&target).ok_or_else(|| bad_target("must be HOST:PORT"))?;
            WireCheckSpec::Tcp(WireTcpCheck { host, port })
        }
        Kind::Dns => WireCheckSpec::Dns(WireDnsCheck { host: target, record: args.record, expect: args.expect }),
        Kind::Ping => WireCheckSpec::Ping(WirePingCheck { host: target }),
        Kind::Certificate => {
            let (host, port) = host_and_port(&target).unwrap_or((target, 443));
            WireCheckSpec::Certificate(WireCertificateCheck { host, port, warn_days: args.warn_days.unwrap_or(14) })
        }
        Kind::Domain => {
            WireCheckSpec::Domain(WireDomainCheck { host: target, warn_days: args.warn_days.unwrap_or(30) })
        }
        Kind::Component => {
            WireCheckSpec::Component(WireComponentCheck { vendor_url: target, component: args.component })
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

fn bad_target(rule: &str) -> AgentError {
    AgentError::Setting { field: "TARGET".into(), rule: rule.into() }
}

fn method(text: &str) -> Result<WireMethod, String> {
    [WireMethod::Get, WireMethod::Head, WireMethod::Post, WireMethod::Put, WireMethod::Patch, WireMethod::Delete]
        .into_iter()
        .find(|method| method.token().eq_ignore_ascii_case(text))
        .ok_or_else(|| "must be GET, HEAD, POST, PUT, PATCH or DELETE".into())
}

fn record(text: &str) -> Result<WireRecordType, String> {
    [
        WireRecordType::A,
        WireRecordType::Aaaa,
        WireRecordType::Cname,
        WireRecordType::Mx,
        WireRecordType::Txt,
        WireRecordType::Ns,
    ]
    .into_iter()
    .find(|record| record.name().eq_ignore_ascii_case(text))
    .ok_or_else(|| "must be A, AAAA, CNAME, MX, TXT or NS".into())
}

fn header(text: &str) -> Result<WireHeader, String> {
    let (name, value) = text.split_once(':').ok_or("must be NAME:VALUE")?;
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
        return Err("name must consist of letters, digits and hyphens".into());
    }
    if value.chars().any(char::is_control) {
        return Err("value must not contain control characters".into());
    }
    Ok(WireHeader { name: name.into(), value: SecretText::new(value.trim()) })
}

/// Returns the outcome's name and reason.
fn outcome_and_reason(spec: &WireCheckSpec, outcome: &WireOutcome) -> (&'static str, Option<String>) {
    match outcome {
        WireOutcome::Passed => ("passed", None),
        WireOutcome::Failed(failure @ WireFailure::AddressNotAllowed { class }) => {
            let flags = match class {
                // Addresses that the operator has excluded stay excluded.
                AddressClass::Own => "use --allow-own-host to check this host",
                AddressClass::Loopback => "use --allow-private --allow-own-host to check such addresses",
                _ => "use --allow-private to check such addresses",
            };
            ("failed", Some(format!("{failure} ({flags})")))
        }
        WireOutcome::Failed(failure) => ("failed", Some(failure.to_string())),
        WireOutcome::Inconclusive(fault) => ("inconclusive", Some(fault.describe(spec.kind()))),
        WireOutcome::Pending => ("pending", None),
    }
}

fn phases(phases: &WirePhases) -> [(&'static str, Option<u32>); 5] {
    [
        ("dns", phases.dns_us),
        ("connect", phases.connect_us),
        ("tls", phases.tls_us),
        ("firstByte", phases.first_byte_us),
        ("transfer", phases.transfer_us),
    ]
}

fn as_text(spec: &WireCheckSpec, report: &ProbeReport, product: Option<&str>) -> String {
    let (outcome, reason) = outcome_and_reason(spec, &report.outcome);
    let mut text = reason.map_or_else(|| outcome.to_owned(), |reason| format!("{outcome}: {reason}"));
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
        line("vendor", Some(format!("{:?} ({})", vendor.state, vendor.vendor_text)));
        line("incident", vendor.incident.as_ref().map(ToString::to_string));
    }
    text
}

fn as_json(spec: &WireCheckSpec, report: &ProbeReport, product: Option<&str>) -> String {
    let (outcome, reason) = outcome_and_reason(spec, &report.outcome);
    let phases: serde_json::Map<String, serde_json::Value> =
        phases(&report.phases).into_iter().filter_map(|(name, us)| Some((format!("{name}Us"), us?.into()))).collect();
    let vendor = report.vendor.as_ref().map(|vendor| {
        serde_json::json!({
            "state": format!("{:?}", vendor.state),
            "word": vendor.vendor_text.as_str(),
            "incident": vendor.incident.as_ref().map(|incident| incident.as_str()),
        })
    });
    let value = serde_json::json!({
        "type": spec.kind().name(),
        "outcome": outcome,
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
    fn hosts_and_ports_are_parsed() {
        assert_eq!(host_and_port("example.com:443"), Some(("example.com".into(), 443)));
        assert_eq!(host_and_port("[2001:db8::1]:80"), Some(("2001:db8::1".into(), 80)));
        for bad in ["example.com", "2001:db8::1", "example.com:0", ":80", "example.com:99999"] {
            assert_eq!(host_and_port(bad), None, "{bad}");
        }
    }

    fn ping() -> WireCheckSpec {
        WireCheckSpec::Ping(WirePingCheck { host: "h".into() })
    }

    #[test]
    fn a_report_is_printed_as_text_and_as_json() {
        let mut report = ProbeReport::outcome_only(WireOutcome::Failed(WireFailure::UnexpectedStatus { got: 503 }));
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
    fn a_refused_address_is_reported_with_its_class_and_the_flag_to_allow_it() {
        let refused = WireFailure::AddressNotAllowed { class: AddressClass::Loopback };
        let text = as_text(&ping(), &ProbeReport::outcome_only(WireOutcome::Failed(refused)), None);
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
