//! WHOIS (RFC 3912), for registries without RDAP: free text, of which only clear statements are used.

use parallax_dial::Host;
use parallax_protocol::result::{WireFailure, WirePhase};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    time::{Instant, timeout_at},
};

use super::{NO_DATE, RATE_LIMITED, date, registrable::top_level, registration::Registration, unreadable, vocabulary};
use crate::probe::{
    context::ProbeContext,
    facts::{CheckError, CheckFacts},
    tls::io_failure,
};

/// Root server that names the server of each top-level domain, and the port of all of them.
#[derive(Debug, Clone)]
pub(super) struct WhoisRoot {
    pub(super) host: String,
    pub(super) port: u16,
}

impl Default for WhoisRoot {
    fn default() -> Self {
        Self { host: "whois.iana.org".to_owned(), port: 43 }
    }
}

/// Maximum size of a response in bytes.
const MAX_RESPONSE: u64 = 64 * 1024;

/// Phrases at the start of a line for an unregistered domain.
const NOT_REGISTERED_PHRASES: [&str; 17] = [
    "no match",
    "not found",
    "no entries found",
    "no data found",
    "no data was found",
    "no object found",
    "no matching record",
    "no information available about domain name",
    "nothing found",
    "object not found",
    "domain not found",
    "domain is not registered",
    "the domain has not been registered",
    "the requested domain was not found",
    "el dominio no se encuentra registrado",
    "status: free",
    "status: available",
];

/// Phrases for a rate limit.
const RATE_LIMIT_PHRASES: [&str; 5] =
    ["limit exceeded", "quota exceeded", "too many requests", "queries exceeded", "access denied"];

/// Returns the server for a top-level domain; `None` if it has none.
pub(super) async fn server_of(
    top: &str,
    root: &WhoisRoot,
    context: &ProbeContext,
    deadline: Instant,
) -> Result<Option<String>, CheckError> {
    let text = query(&root.host, root.port, top, context, deadline, &mut CheckFacts::default()).await?;
    Ok(fields(&text).find(|(name, _)| name == "whois" || name == "refer").map(|(_, host)| host.to_owned()))
}

/// Queries a server about a domain.
pub(super) async fn look_up(
    server: &str,
    port: u16,
    domain: &str,
    context: &ProbeContext,
    deadline: Instant,
    facts: &mut CheckFacts,
) -> Result<Option<Registration>, CheckError> {
    let text = query(server, port, &query_text(domain), context, deadline, facts).await?;
    read(&text, domain).map_err(unreadable)
}

/// Returns the query for a domain: Japan's registry responds in English if `/e` is appended.
fn query_text(domain: &str) -> String {
    if top_level(domain) == "jp" { format!("{domain}/e") } else { domain.to_owned() }
}

async fn query(
    host: &str,
    port: u16,
    question: &str,
    context: &ProbeContext,
    deadline: Instant,
    facts: &mut CheckFacts,
) -> Result<String, CheckError> {
    let response = async {
        let host = Host::parse(host).map_err(|_| unreadable("its WHOIS server has no usable name"))?;
        let admitted = context.admit(&host, port, deadline).await?;
        facts.record_resolution(&admitted);
        let mut connected = admitted.connect(deadline).await?;
        facts.record_connection(&connected);
        let mut answer = Vec::new();
        let exchange = async {
            connected.stream.write_all(format!("{question}\r\n").as_bytes()).await?;
            connected.stream.take(MAX_RESPONSE).read_to_end(&mut answer).await
        };
        match timeout_at(deadline, exchange).await {
            Err(_) => Err(WireFailure::Timeout { phase: WirePhase::Transfer }.into()),
            Ok(Err(error)) => Err(io_failure(&error).unwrap_or(WireFailure::Reset).into()),
            Ok(Ok(_)) => Ok(String::from_utf8_lossy(&answer).into_owned()),
        }
    };
    response.await.map_err(|error| match error {
        CheckError::Target(failure) => unreadable(failure.to_string()),
        own @ CheckError::Own(_) => own,
    })
}

fn read(text: &str, domain: &str) -> Result<Option<Registration>, String> {
    let text = text.trim_start_matches('\u{feff}');
    let (folded, top) = (text.to_lowercase(), top_level(domain));
    let mut ends: Vec<(u8, &str)> = Vec::new();
    let mut registration = Registration::default();
    for (name, value) in fields(text).chain(fields_without_colon(text)) {
        if let Some(rank) = vocabulary::expiry_rank(&name, top) {
            ends.push((rank, value));
        } else if let Some(until) = japanese_expiry(&name, value, top) {
            ends.push((vocabulary::VAGUE, until));
        } else if vocabulary::is_registration_date(&name) && registration.registered_ms.is_none() {
            registration.registered_ms = date::read(value, top);
        }
        if name.ends_with("status") || name.ends_with("state") {
            registration = registration.with_status(value);
        }
    }
    if !ends.is_empty() {
        let native = url::quirks::domain_to_unicode(domain);
        if !folded.contains(domain) && !folded.contains(&native) {
            return Err("its answer is about another domain".to_owned());
        }
        return registration.with_expiry(&mut ends, top).map(Some);
    }
    if RATE_LIMIT_PHRASES.iter().any(|phrase| folded.contains(phrase)) {
        return Err(RATE_LIMITED.to_owned());
    }
    let mut lines = folded.lines().map(|line| {
        let line = line.trim_start_matches(['%', '#', '>', '*', '-', '"', ' ', '\t']);
        // Serbia's registry writes a code first.
        let line = line.strip_prefix("error:103:").unwrap_or(line);
        line.replace('_', " ").split_whitespace().collect::<Vec<_>>().join(" ")
    });
    if lines.any(|line| NOT_REGISTERED_PHRASES.iter().any(|phrase| line.starts_with(phrase))) {
        return Ok(None);
    }
    Err(NO_DATE.to_owned())
}

/// Returns `name: value` lines with normalised names; some registries write `name.....: value` or `[name]
/// value`, and some put the value on the next line.
fn fields(text: &str) -> impl Iterator<Item = (String, &str)> {
    let lines = text.lines().map(str::trim);
    let next = lines.clone().skip(1).chain([""]);
    lines.zip(next).filter(|(line, _)| !line.starts_with(['%', '#'])).filter_map(|(line, next)| {
        // Malaysia's registry puts a letter before the bracket.
        let bracket = line.find('[').filter(|at| *at < 4).and_then(|at| line.get(at + 1..));
        let (name, value) = match bracket {
            Some(rest) => rest.split_once(']')?,
            None => line.split_once(':')?,
        };
        let value = value.trim_start_matches(['.', ' ', '\t']).trim();
        let value = if value.is_empty() && !next.contains(':') { next } else { value };
        (!value.is_empty()).then(|| (vocabulary::normalized(name), value))
    })
}

/// Returns lines such as `Record expires on 2027-05-01 00:00:00`: a name, and a value that begins with its
/// first digit.
fn fields_without_colon(text: &str) -> impl Iterator<Item = (String, &str)> {
    text.lines().map(str::trim).filter(|line| !line.starts_with(['%', '#', '['])).filter_map(|line| {
        let (name, value) = line.split_at_checked(line.find(|c: char| c.is_ascii_digit())?)?;
        (!name.contains(':')).then(|| (vocabulary::normalized(name), value))
    })
}

/// Returns the date in `Connected (2027/05/31)`, with which Japan's registry states the expiry of names below
/// `co.jp` and the like.
fn japanese_expiry<'a>(name: &str, value: &'a str, top: &str) -> Option<&'a str> {
    let is_state = top == "jp" && name == "state";
    value.split_once('(').filter(|_| is_state).map(|(_, date)| date)
}

#[cfg(test)]
mod tests;
