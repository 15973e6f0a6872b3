//! WHOIS (RFC 3912), for registries without RDAP: free text, of which only what is plain is believed.

use chrono::{NaiveDate, NaiveTime};
use parallax_dial::Host;
use parallax_protocol::result::{Failure, Phase};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    time::{Instant, timeout_at},
};

use super::{
    BUSY,
    answer::{Registration, moment},
    unreadable,
};
use crate::probe::{
    facts::{Facts, Trouble},
    net::Net,
    tls::io_failure,
};

/// Where to ask which server a top-level domain has, and on which port all of them listen.
#[derive(Debug, Clone)]
pub(super) struct Root {
    pub(super) host: String,
    pub(super) port: u16,
}

impl Default for Root {
    fn default() -> Self {
        Self { host: "whois.iana.org".to_owned(), port: 43 }
    }
}

/// Bytes of an answer that are read.
const MAX_ANSWER: u64 = 64 * 1024;

/// What registries call the end of a registration.
const ENDS: [&str; 14] = [
    "registry expiry date",
    "registrar registration expiration date",
    "expiry date",
    "expiration date",
    "expiration time",
    "expire date",
    "expires on",
    "expires at",
    "expires",
    "expire",
    "domain expires",
    "paid-till",
    "renewal date",
    "validity",
];

/// How registries say that there is no such domain.
const ABSENT: [&str; 9] = [
    "no match",
    "not found",
    "no entries found",
    "no data found",
    "no object found",
    "nothing found",
    "domain not found",
    "status: free",
    "status: available",
];

/// How they say that they are asked too often.
const TOO_OFTEN: [&str; 5] =
    ["limit exceeded", "quota exceeded", "too many requests", "queries exceeded", "access denied"];

/// The server that answers for a top-level domain; `None` where it has none.
pub(super) async fn server_of(
    top: &str,
    root: &Root,
    net: &Net,
    deadline: Instant,
) -> Result<Option<String>, Trouble> {
    let text = query(&root.host, root.port, top, net, deadline, &mut Facts::default()).await?;
    Ok(fields(&text).find(|(name, _)| name == "whois" || name == "refer").map(|(_, host)| host.to_owned()))
}

/// What a server says of a domain.
pub(super) async fn ask(
    server: &str,
    port: u16,
    domain: &str,
    net: &Net,
    deadline: Instant,
    facts: &mut Facts,
) -> Result<Option<Registration>, Trouble> {
    let text = query(server, port, domain, net, deadline, facts).await?;
    read(&text, domain).map_err(unreadable)
}

async fn query(
    host: &str,
    port: u16,
    question: &str,
    net: &Net,
    deadline: Instant,
    facts: &mut Facts,
) -> Result<String, Trouble> {
    let talking = async {
        let host = Host::parse(host).map_err(|_| unreadable("its WHOIS server has no usable name"))?;
        let admitted = net.admit(&host, port, deadline).await?;
        facts.admitted(&admitted);
        let mut connected = admitted.connect(deadline).await?;
        facts.connected(&connected);
        let mut answer = Vec::new();
        let exchange = async {
            connected.stream.write_all(format!("{question}\r\n").as_bytes()).await?;
            connected.stream.take(MAX_ANSWER).read_to_end(&mut answer).await
        };
        match timeout_at(deadline, exchange).await {
            Err(_) => Err(Failure::Timeout { phase: Phase::Transfer }.into()),
            Ok(Err(error)) => Err(io_failure(&error).unwrap_or(Failure::Reset).into()),
            Ok(Ok(_)) => Ok(String::from_utf8_lossy(&answer).into_owned()),
        }
    };
    talking.await.map_err(|trouble| match trouble {
        Trouble::Target(failure) => unreadable(failure.to_string()),
        own @ Trouble::Own(_) => own,
    })
}

fn read(text: &str, domain: &str) -> Result<Option<Registration>, &'static str> {
    let folded = text.to_ascii_lowercase();
    if let Some((_, date)) = fields(text).find(|(name, _)| ENDS.contains(&name.as_str())) {
        if !folded.contains(domain) {
            return Err("its answer is about another domain");
        }
        let expires_ms = date_of(date).ok_or("its date can't be read")?;
        let is_lapsed = fields(text).any(|(name, value)| {
            let value = value.to_ascii_lowercase().replace(' ', "");
            name.ends_with("status")
                && (value.starts_with("redemptionperiod") || value.starts_with("pendingdelete"))
        });
        return Ok(Some(Registration { expires_ms: Some(expires_ms), is_lapsed }));
    }
    if TOO_OFTEN.iter().any(|words| folded.contains(words)) {
        return Err(BUSY);
    }
    let mut lines = folded.lines().map(|line| line.trim_start_matches(['%', '#', '>', '*', ' ', '\t']));
    if lines.any(|line| {
        ABSENT.iter().any(|words| line.split_whitespace().collect::<Vec<_>>().join(" ").starts_with(words))
    }) {
        return Ok(None);
    }
    Err("it does not tell when the registration ends")
}

/// `name: value` lines, names in lower case; some write `name.....: value` or `[name] value`.
fn fields(text: &str) -> impl Iterator<Item = (String, &str)> {
    text.lines().filter_map(|line| {
        let line = line.trim();
        let (name, value) = match line.strip_prefix('[') {
            Some(rest) => rest.split_once(']')?,
            None => line.split_once(':')?,
        };
        let value = value.trim();
        let name = name.trim().trim_end_matches('.').to_ascii_lowercase();
        (!value.is_empty()).then_some((name, value))
    })
}

/// The forms of dates that are told apart without guessing: a day before its month is believed only where the
/// month has a name or points stand between.
fn date_of(text: &str) -> Option<i64> {
    if let Some(moment) = moment(text) {
        return Some(moment);
    }
    let first = text.split_whitespace().next()?;
    if let Some(moment) = moment(first) {
        return Some(moment);
    }
    let day = ["%Y.%m.%d", "%Y/%m/%d", "%d.%m.%Y", "%d-%b-%Y", "%Y%m%d"]
        .iter()
        .find_map(|form| NaiveDate::parse_from_str(first, form).ok())?;
    Some(day.and_time(NaiveTime::MIN).and_utc().timestamp_millis())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 13 August 2027.
    const DAY: i64 = 1_818_115_200_000;

    #[test]
    fn the_end_is_found_under_its_many_names() {
        for line in [
            "   Registry Expiry Date: 2027-08-13T00:00:00Z",
            "expires:          2027-08-13",
            "paid-till:     2027-08-13T00:00:00Z",
            "Expiry date:  13-Aug-2027",
            "expires............: 13.8.2027 00:00:00",
            "[Expires on] 2027/08/13",
            "Renewal date:   2027.08.13",
            "expire: 13.08.2027",
            "Expiration Date: 2027-08-13 00:00:00 (UTC+8)",
        ] {
            let text = format!("% Terms apply\r\ndomain: EXAMPLE.zz\r\n{line}\r\n");
            let read = read(&text, "example.zz");
            assert_eq!(read, Ok(Some(Registration { expires_ms: Some(DAY), is_lapsed: false })), "{line}");
        }
        let text = "Domain: example.zz\nExpiry Date: 2027-08-13\nDomain Status: redemptionPeriod https://icann.example\n";
        assert!(read(text, "example.zz").unwrap().unwrap().is_lapsed);
    }

    #[test]
    fn only_a_plain_word_says_that_there_is_no_such_domain() {
        for text in [
            "No match for \"EXAMPLE.ZZ\".\n",
            "% No entries found\n",
            ">>> Domain not found\n",
            "Domain: a\nStatus:  free\n",
        ] {
            assert_eq!(read(text, "example.zz"), Ok(None), "{text}");
        }
        for text in [
            "",
            "<html>404 not found</html>",
            "Query limit exceeded. Not found.\n",
            "Domain: example.zz\nStatus: connect\n",
            "Domain: other.zz\nExpiry date: 2027-08-13\n",
            "Domain: example.zz\nExpiry date: soon\n",
            "Domain: example.zz\nExpiry date: 08/13/27\n",
        ] {
            assert!(read(text, "example.zz").is_err(), "{text}");
        }
    }

    #[test]
    fn the_root_names_a_server() {
        let text = "% IANA\ndomain:       ZZ\nwhois:        whois.nic.zz\n\nstatus:       ACTIVE\n";
        let server = fields(text).find(|(name, _)| name == "whois").map(|(_, host)| host);
        assert_eq!(server, Some("whois.nic.zz"));
        // A country without one.
        assert!(fields("domain: ZZ\nwhois:\n").all(|(name, _)| name != "whois"));
    }
}
