//! The dns probe: one query to the agent's resolvers, and a search for the expected text in the answers.
//! Answers about private networks are hidden from customers, unless the operator allows them.

use std::net::IpAddr;

use parallax_dial::{DialError, DnsRecord, DnsRecordKind, Host, HostError, HostName};
use parallax_protocol::{
    check::{WireDnsCheck, WireRecordType},
    result::{ProbeReport, WireFailure, WireOutcome},
    text::ShortText,
};
use tokio::time::Instant;

use super::{
    context::ProbeContext,
    facts::{CheckError, CheckFacts, bad_target, micros},
};

/// Queries without a cache; the latency is that of the query.
pub(super) async fn run(check: &WireDnsCheck, context: &ProbeContext) -> ProbeReport {
    let mut facts = CheckFacts::default();
    let started = Instant::now();
    let answers = query(check, context).await;
    // Negative answers such as NXDOMAIN count as answers.
    let answered = match &answers {
        Ok(_) => true,
        Err(CheckError::Target(failure)) => {
            matches!(failure, WireFailure::DnsNotFound | WireFailure::DnsNoRecord | WireFailure::DnsFailed { .. })
        }
        Err(CheckError::Own(_)) => false,
    };
    if answered {
        let took = started.elapsed();
        facts.duration = Some(took);
        facts.phases.dns_us = Some(micros(took));
    }
    facts.report(judge(check.expect.as_deref(), answers))
}

async fn query(check: &WireDnsCheck, context: &ProbeContext) -> Result<Vec<DnsRecord>, CheckError> {
    let name = match Host::parse(&check.host) {
        Ok(Host::Name(name)) => name,
        Err(HostError::Empty) if check.host == "." => HostName::root(),
        Ok(Host::Ip(_)) => return Err(bad_target("the host must be a name, not an address").into()),
        Err(error) => return Err(bad_target(error.to_string()).into()),
    };
    let records = context.guard().records(&name, kind(check.record), context.deadline()).await;
    records.map_err(|error: DialError| error.into())
}

fn kind(record: WireRecordType) -> DnsRecordKind {
    match record {
        WireRecordType::A => DnsRecordKind::A,
        WireRecordType::Aaaa => DnsRecordKind::Aaaa,
        WireRecordType::Cname => DnsRecordKind::Cname,
        WireRecordType::Mx => DnsRecordKind::Mx,
        WireRecordType::Txt => DnsRecordKind::Txt,
        WireRecordType::Ns => DnsRecordKind::Ns,
    }
}

/// Judges the answers. Without an expected text any answer passes; with one, a single answer that contains it
/// is enough.
fn judge(expect: Option<&str>, answers: Result<Vec<DnsRecord>, CheckError>) -> WireOutcome {
    let answers = match answers {
        Ok(answers) => answers,
        Err(error) => return error.into(),
    };
    let Some(expect) = expect.filter(|expect| !expect.is_empty()) else { return WireOutcome::Passed };
    if answers.iter().any(|answer| contains(answer, expect)) {
        return WireOutcome::Passed;
    }
    let mut got = String::new();
    for answer in &answers {
        if got.len() > ShortText::MAX {
            break;
        }
        if !got.is_empty() {
            got.push_str(", ");
        }
        got.push_str(&zone_file_text(answer));
    }
    WireOutcome::Failed(WireFailure::DnsMismatch { got: ShortText::new(&got) })
}

/// Compares text exactly. Names are compared without case, trailing dot and script; if a whole address is
/// expected, `192.0.2.1` does not match `192.0.2.11`, and an IPv6 address may be written in any form.
fn contains(answer: &DnsRecord, expect: &str) -> bool {
    match answer {
        DnsRecord::Text(text) => text.contains(expect),
        DnsRecord::Address(ip) => match expect.trim().parse::<IpAddr>() {
            Ok(expected) => *ip == expected,
            Err(_) => ip.to_string().contains(&normalized(expect)),
        },
        DnsRecord::Name(_) | DnsRecord::Exchange { .. } => zone_file_text(answer).contains(&normalized(expect)),
    }
}

fn normalized(expect: &str) -> String {
    let expect = expect.trim();
    match Host::parse(expect) {
        Ok(Host::Name(name)) => name.as_str().to_owned(),
        Ok(Host::Ip(_)) | Err(_) => match expect.strip_suffix('.') {
            Some(bare) if !bare.is_empty() && !bare.ends_with(' ') => bare.to_ascii_lowercase(),
            Some(_) | None => expect.to_ascii_lowercase(),
        },
    }
}

/// Formats the answer as in zone files, names without their trailing dot.
fn zone_file_text(answer: &DnsRecord) -> String {
    match answer {
        DnsRecord::Address(ip) => ip.to_string(),
        DnsRecord::Name(text) | DnsRecord::Text(text) => text.clone(),
        DnsRecord::Exchange { preference, host } => format!("{preference} {host}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parallax_protocol::result::WireOwnFault;

    fn passes(answer: DnsRecord, expect: &str) -> bool {
        judge(Some(expect), Ok(vec![DnsRecord::Text("other".to_owned()), answer])) == WireOutcome::Passed
    }

    #[test]
    fn names_compare_without_case_dot_and_script() {
        let name = |text: &str| DnsRecord::Name(text.to_owned());
        for expect in ["ns1.example.net", "NS1.Example.NET.", "example.net", "ns1"] {
            assert!(passes(name("ns1.example.net"), expect), "{expect}");
        }
        assert!(!passes(name("ns1.example.net"), "ns2.example.net"));
        assert!(passes(name("xn--bcher-kva.example"), "b\u{fc}cher.example"));
        let exchange = || DnsRecord::Exchange { preference: 10, host: "mx.example.net".to_owned() };
        for expect in ["mx.example.net.", "10 MX.example.net.", "10 mx", "10"] {
            assert!(passes(exchange(), expect), "{expect}");
        }
        assert!(!passes(exchange(), "20 mx.example.net"));
        // A domain without mail (RFC 7505).
        assert!(passes(DnsRecord::Exchange { preference: 0, host: ".".to_owned() }, "0 ."));
    }

    #[test]
    fn text_compares_exactly() {
        let text = || DnsRecord::Text("v=spf1 Include:_spf.example.net -all".to_owned());
        assert!(passes(text(), "Include:_spf.example.net"));
        assert!(!passes(text(), "include:_spf.example.net"));
        assert!(!passes(text(), "-all."));
    }

    #[test]
    fn a_whole_address_matches_exactly() {
        let v4 = || DnsRecord::Address("192.0.2.11".parse().unwrap());
        assert!(passes(v4(), "192.0.2.11"));
        assert!(passes(v4(), "192.0.2."));
        assert!(!passes(v4(), "192.0.2.1"));
        let v6 = || DnsRecord::Address("2001:db8::a".parse().unwrap());
        assert!(passes(v6(), "2001:DB8:0:0:0:0:0:A"));
        assert!(passes(v6(), "2001:DB8:"));
    }

    #[test]
    fn a_mismatch_reports_the_answer() {
        let answers = vec![DnsRecord::Name("a.example".to_owned()), DnsRecord::Name("b.example".to_owned())];
        assert_eq!(
            judge(Some("c.example"), Ok(answers)),
            WireOutcome::Failed(WireFailure::DnsMismatch { got: ShortText::new("a.example, b.example") })
        );
    }

    #[test]
    fn a_fault_names_the_side_at_fault() {
        assert_eq!(judge(None, Err(WireFailure::DnsNotFound.into())), WireOutcome::Failed(WireFailure::DnsNotFound));
        let dead = CheckError::Own(WireOwnFault::ResolverDead);
        assert_eq!(judge(None, Err(dead)), WireOutcome::Inconclusive(WireOwnFault::ResolverDead));
        assert_eq!(judge(Some(""), Ok(vec![DnsRecord::Text(String::new())])), WireOutcome::Passed);
    }
}
