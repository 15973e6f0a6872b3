//! The dns probe: one query to the agent's resolvers, and a search for the expected text in the answers.
//! Answers about private networks are hidden from customers, unless the operator allows them.

use std::net::IpAddr;

use parallax_dial::{DialError, Host, HostError, Name, Record, RecordKind};
use parallax_protocol::{
    check::{DnsCheck, RecordType},
    result::{Failure, Outcome, Report},
    text::Detail,
};
use tokio::time::Instant;

use super::{
    facts::{Facts, Trouble, bad_target, micros},
    net::Net,
};

/// Queries without a cache; the latency is that of the query.
pub(super) async fn run(check: &DnsCheck, net: &Net) -> Report {
    let mut facts = Facts::default();
    let started = Instant::now();
    let answers = ask(check, net).await;
    // Negative answers such as NXDOMAIN count as answers.
    let answered = match &answers {
        Ok(_) => true,
        Err(Trouble::Target(failure)) => {
            matches!(failure, Failure::DnsNotFound | Failure::DnsNoRecord | Failure::DnsFailed { .. })
        }
        Err(Trouble::Own(_)) => false,
    };
    if answered {
        let took = started.elapsed();
        facts.took = Some(took);
        facts.phases.dns_us = Some(micros(took));
    }
    facts.report(judge(check.expect.as_deref(), answers))
}

async fn ask(check: &DnsCheck, net: &Net) -> Result<Vec<Record>, Trouble> {
    let name = match Host::parse(&check.host) {
        Ok(Host::Name(name)) => name,
        Err(HostError::Empty) if check.host == "." => Name::root(),
        Ok(Host::Ip(_)) => return Err(bad_target("the host must be a name, not an address").into()),
        Err(error) => return Err(bad_target(error.to_string()).into()),
    };
    let asked = net.guard().records(&name, kind(check.record), net.deadline()).await;
    asked.map_err(|error: DialError| error.into())
}

fn kind(record: RecordType) -> RecordKind {
    match record {
        RecordType::A => RecordKind::A,
        RecordType::Aaaa => RecordKind::Aaaa,
        RecordType::Cname => RecordKind::Cname,
        RecordType::Mx => RecordKind::Mx,
        RecordType::Txt => RecordKind::Txt,
        RecordType::Ns => RecordKind::Ns,
    }
}

/// Judges the answers. Without an expected text any answer passes; with one, a single answer that contains it
/// is enough.
fn judge(expect: Option<&str>, answers: Result<Vec<Record>, Trouble>) -> Outcome {
    let answers = match answers {
        Ok(answers) => answers,
        Err(trouble) => return trouble.into(),
    };
    let Some(expect) = expect.filter(|expect| !expect.is_empty()) else { return Outcome::Passed };
    if answers.iter().any(|answer| contains(answer, expect)) {
        return Outcome::Passed;
    }
    let mut got = String::new();
    for answer in &answers {
        if got.len() > Detail::MAX {
            break;
        }
        if !got.is_empty() {
            got.push_str(", ");
        }
        got.push_str(&shown(answer));
    }
    Outcome::Failed(Failure::DnsMismatch { got: Detail::new(&got) })
}

/// Compares text exactly. Names are compared without case, trailing dot and script; if a whole address is
/// expected, `192.0.2.1` does not match `192.0.2.11`, and an IPv6 address may be written in any form.
fn contains(answer: &Record, expect: &str) -> bool {
    match answer {
        Record::Text(text) => text.contains(expect),
        Record::Address(ip) => match expect.trim().parse::<IpAddr>() {
            Ok(expected) => *ip == expected,
            Err(_) => ip.to_string().contains(&folded(expect)),
        },
        Record::Name(_) | Record::Exchange { .. } => shown(answer).contains(&folded(expect)),
    }
}

fn folded(expect: &str) -> String {
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
fn shown(answer: &Record) -> String {
    match answer {
        Record::Address(ip) => ip.to_string(),
        Record::Name(text) | Record::Text(text) => text.clone(),
        Record::Exchange { preference, host } => format!("{preference} {host}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parallax_protocol::result::OwnFault;

    fn passes(answer: Record, expect: &str) -> bool {
        judge(Some(expect), Ok(vec![Record::Text("other".to_owned()), answer])) == Outcome::Passed
    }

    #[test]
    fn names_compare_without_case_dot_and_script() {
        let name = |text: &str| Record::Name(text.to_owned());
        for expect in ["ns1.example.net", "NS1.Example.NET.", "example.net", "ns1"] {
            assert!(passes(name("ns1.example.net"), expect), "{expect}");
        }
        assert!(!passes(name("ns1.example.net"), "ns2.example.net"));
        assert!(passes(name("xn--bcher-kva.example"), "b\u{fc}cher.example"));
        let exchange = || Record::Exchange { preference: 10, host: "mx.example.net".to_owned() };
        for expect in ["mx.example.net.", "10 MX.example.net.", "10 mx", "10"] {
            assert!(passes(exchange(), expect), "{expect}");
        }
        assert!(!passes(exchange(), "20 mx.example.net"));
        // A domain without mail (RFC 7505).
        assert!(passes(Record::Exchange { preference: 0, host: ".".to_owned() }, "0 ."));
    }

    #[test]
    fn text_compares_exactly() {
        let text = || Record::Text("v=spf1 Include:_spf.example.net -all".to_owned());
        assert!(passes(text(), "Include:_spf.example.net"));
        assert!(!passes(text(), "include:_spf.example.net"));
        assert!(!passes(text(), "-all."));
    }

    #[test]
    fn a_whole_address_is_not_a_part_of_another() {
        let v4 = || Record::Address("192.0.2.11".parse().unwrap());
        assert!(passes(v4(), "192.0.2.11"));
        assert!(passes(v4(), "192.0.2."));
        assert!(!passes(v4(), "192.0.2.1"));
        let v6 = || Record::Address("2001:db8::a".parse().unwrap());
        assert!(passes(v6(), "2001:DB8:0:0:0:0:0:A"));
        assert!(passes(v6(), "2001:DB8:"));
    }

    #[test]
    fn a_mismatch_says_what_was_answered() {
        let answers = vec![Record::Name("a.example".to_owned()), Record::Name("b.example".to_owned())];
        assert_eq!(
            judge(Some("c.example"), Ok(answers)),
            Outcome::Failed(Failure::DnsMismatch { got: Detail::new("a.example, b.example") })
        );
    }

    #[test]
    fn a_trouble_says_whose_it_is() {
        assert_eq!(judge(None, Err(Failure::DnsNotFound.into())), Outcome::Failed(Failure::DnsNotFound));
        let dead = Trouble::Own(OwnFault::ResolverDead);
        assert_eq!(judge(None, Err(dead)), Outcome::Inconclusive(OwnFault::ResolverDead));
        assert_eq!(judge(Some(""), Ok(vec![Record::Text(String::new())])), Outcome::Passed);
    }
}
