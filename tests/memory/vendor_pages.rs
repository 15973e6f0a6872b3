//! Memory that vendors' status pages take in an agent: as much as its monitors need, however large a page is.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use parallax_agent::config::{AgentConfig, NameServers};
use parallax_agent::probe::run;
use parallax_protocol::check::{WireCheckSpec, WireComponentCheck};
use parallax_protocol::result::WireOutcome;

use super::{alone, peak_bytes};

/// Pages that are followed.
const PAGES: usize = 40;
/// The most memory that reading and caching all of them may take: a few documents of 1 MiB in progress, and little
/// more.
const MOST: usize = 16 << 20;

/// Returns a page of as many components as fit into a document, with names of that length.
fn document(name: usize) -> String {
    let mut text =
        r#"{"page":{"id":"x"},"status":{"indicator":"none","description":"All well"},"components":["#.to_owned();
    text.push_str(r#"{"name":"API","status":"operational"}"#);
    for n in 0.. {
        let filler = "x".repeat(name);
        let component = format!(r#",{{"id":"{n}","name":"{n} {filler}","status":"operational"}}"#);
        if text.len() + component.len() > (1 << 20) - 2 {
            break;
        }
        text.push_str(&component);
    }
    text + "]}"
}

/// Answers each request with one of the documents, by its path's first letter, on its own thread.
fn serve(documents: [String; 2]) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let _ = answer(stream.unwrap(), &documents);
        }
    });
    address
}

fn answer(mut stream: TcpStream, documents: &[String; 2]) -> std::io::Result<()> {
    let mut head = [0; 2_000];
    let read = stream.read(&mut head)?;
    let document = &documents[usize::from(head[..read].starts_with(b"GET /long"))];
    write!(stream, "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", document.len())?;
    stream.write_all(document.as_bytes())
}

#[test]
fn hostile_pages_leave_little_behind() {
    alone(|| {
        let address = serve([document(20), document(9_000)]);
        let folder = tempfile::tempdir().unwrap();
        let config = AgentConfig {
            allow_private: true,
            allow_own_host: true,
            resolvers: NameServers::Servers(vec![(Ipv4Addr::LOCALHOST, 9).into()]),
            ..AgentConfig::new(folder.path())
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let peak = peak_bytes(|| {
            runtime.block_on(async {
                let probes = parallax_agent::probes(&config).unwrap().with_limit(Duration::from_secs(60));
                for page in 0..PAGES {
                    let kind = if page % 2 == 0 { "long" } else { "many" };
                    let check = WireComponentCheck {
                        vendor_url: format!("http://{address}/{kind}/{page}"),
                        component: Some("API".to_owned()),
                    };
                    let report = run(&WireCheckSpec::Component(check), &probes).await;
                    assert_eq!(report.outcome, WireOutcome::Passed, "{kind}");
                }
            });
        });
        let _ = writeln!(std::io::stdout(), "figure: {PAGES} hostile vendor pages: {} KiB at most", peak >> 10);
        assert!(peak <= MOST, "{peak} bytes");
    });
}
