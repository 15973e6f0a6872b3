//! A check target as a separate process, for network namespaces. `http ADDRESS` reads its mode from standard input,
//! `dns ADDRESS NAME=IP…` resolves names, and `count ADDRESS ADDRESS…` reports each connection's local address; all of
//! them end with their input. `ask ADDRESS` reports the result of one request.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test helper that cannot continue panics")]

use std::collections::BTreeMap;
use std::io::Write;
use std::net::SocketAddr;
use std::time::Duration;

use parallax_tests::name_server;
use parallax_tests::test_target::TestTarget;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, stdin};
use tokio::net::{TcpListener, TcpStream};

/// Timeout of `ask`.
const PATIENCE: Duration = Duration::from_secs(4);

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [kind, address, names @ ..] = arguments.as_slice() else {
        panic!("usage: http|dns|count|ask ADDRESS [NAME=IP…|ADDRESS…]")
    };
    let address = address.parse().expect("an address is IP:PORT");
    match kind.as_str() {
        "http" => {
            let mut target = TestTarget::at(address).await;
            print_line("ready");
            let mut lines = BufReader::new(stdin()).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                target.set(line.parse().expect("a mode")).await;
                print_line(&format!("now {line}"));
            }
        }
        "dns" => {
            let names: BTreeMap<_, _> = names
                .iter()
                .filter_map(|name| name.split_once('='))
                .map(|(name, ip)| (name.to_owned(), ip.parse().expect("an IPv4 address")))
                .collect();
            print_line("ready");
            let mut lines = BufReader::new(stdin()).lines();
            tokio::select! {
                served = name_server::serve(address, names) => served.expect("name server"),
                _ = lines.next_line() => {}
            }
        }
        "count" => {
            let more = names.iter().map(|address| address.parse().expect("an address is IP:PORT"));
            for address in std::iter::once(address).chain(more) {
                let listener = TcpListener::bind(address).await.expect("address is free");
                tokio::spawn(async move {
                    while let Ok((_, from)) = listener.accept().await {
                        print_line(&format!("connected to {address} from {from}"));
                    }
                });
            }
            print_line("ready");
            let _ = BufReader::new(stdin()).lines().next_line().await;
        }
        "ask" => print_line(request_status(address).await),
        other => panic!("no kind `{other}`"),
    }
}

/// Returns `answered`, `refused`, or `silent` after the timeout.
async fn request_status(address: SocketAddr) -> &'static str {
    let talk = async {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(b"GET / HTTP/1.1\r\nHost: site\r\n\r\n").await?;
        let mut text = Vec::new();
        stream.read_to_end(&mut text).await
    };
    match tokio::time::timeout(PATIENCE, talk).await {
        Err(_) => "silent",
        Ok(Ok(_)) => "answered",
        Ok(Err(error)) if error.kind() == std::io::ErrorKind::ConnectionRefused => "refused",
        Ok(Err(error)) => panic!("{error}"),
    }
}

fn print_line(line: &str) {
    let mut out = std::io::stdout();
    writeln!(out, "{line}").and_then(|()| out.flush()).expect("the test listens");
}
