//! One HTTP check with the agent's library.
//!
//! Run it with `cargo run -p parallax-agent --example one_check -- https://example.com`.
//! A probe needs no coordinator and no enrolment: a check specification and the probes go in, a report comes
//! out. As in a running agent, only public addresses are checked.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "an example prints its result")]

use std::process::ExitCode;

use parallax_agent::config::AgentConfig;
use parallax_agent::{probe, probes};
use parallax_protocol::check::{WireCheckSpec, WireHttpCheck, WireKeywordMode, WireMethod};
use parallax_protocol::result::WireOutcome;

#[tokio::main]
async fn main() -> ExitCode {
    let Some(url) = std::env::args().nth(1) else {
        eprintln!("usage: one_check URL");
        return ExitCode::from(2);
    };
    // Fails only if a provider is already installed, which is then this one.
    let _ = rustls::crypto::ring::default_provider().install_default();

    // The folder holds what an enrolled agent keeps; an HTTP check uses none of it.
    let probes = match probes(&AgentConfig::new("parallax-agent-data")) {
        Ok(probes) => probes,
        Err(error) => {
            eprintln!("one_check: {error}");
            return ExitCode::FAILURE;
        }
    };
    let spec = WireCheckSpec::Http(WireHttpCheck {
        url,
        method: WireMethod::Get,
        headers: Vec::new(),
        body: None,
        expect_status: None,
        keyword: None,
        keyword_mode: WireKeywordMode::Present,
    });
    let report = probe::run(&spec, &probes).await;

    match &report.outcome {
        WireOutcome::Passed => println!("passed"),
        WireOutcome::Failed(failure) => println!("failed: {failure}"),
        WireOutcome::Inconclusive(reason) => println!("inconclusive: {}", reason.describe(spec.kind())),
        WireOutcome::Pending => println!("pending"),
    }
    if let Some(status) = report.status_code {
        println!("status   {status}");
    }
    if let Some(address) = report.address {
        println!("address  {address}");
    }
    if let Some(latency) = report.latency_ms {
        println!("latency  {latency} ms");
    }
    if report.outcome == WireOutcome::Passed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
