//! Benchmarks: figures as lines `name figure unit bound`, in CPU time of the measured process alone.
//!
//! The measured program is always the real binary in its own process. The load generator runs in this process, on
//! another core if there is one.

mod agent;
mod api;
mod coordinator;
mod dashboard;
mod deliveries;
mod disk;
mod ingest;
mod memory;
mod pages;
mod pings;
pub(crate) mod process_usage;
mod slots;
mod stub_coordinator;
mod visitors;

use std::io::Write;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

const USAGE: &str = "usage: parallax-bench agent TYPE RATE SECONDS | agent-memory | late | wire | ingest [MONITORS] [ROUNDS] \
                     | disk [MONITORS] [HOURS] [PACE_MS] | memory [MONITORS] [REGIONS] [DAYS] | pings [SECONDS] | api [SECONDS] | deliveries [COUNT] \
                     | pages [ROUNDS] | visitors [VIEWS] [STREAMS] | dashboard [BROWSERS] | slots [HANGING] [SECONDS]";

/// Runs the benchmark named on the command line. Exit codes: 0, 2 (usage).
pub fn main() -> ExitCode {
    crate::use_ring();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let number =
        |at: usize, default: u32| words.get(at).map_or(default, |word| word.parse().expect("arguments are numbers"));
    match words.first().copied() {
        Some("agent") if words.len() == 4 => agent::checks(words[1], number(2, 0), number(3, 6)),
        Some("agent-memory") => agent::memory(),
        Some("late") => agent::lateness(),
        Some("wire") => agent::wire(),
        Some("ingest") => ingest::ingest(number(1, 20_000), number(2, 3)),
        Some("disk") => disk::disk(number(1, 100), number(2, 26), number(3, 10)),
        Some("memory") => memory::memory(number(1, 10_000), number(2, 6), number(3, 30)),
        Some("api") => api::api(number(1, 5)),
        Some("deliveries") => deliveries::deliveries(number(1, 20_000)),
        Some("pages") => pages::pages(number(1, 5)),
        Some("visitors") => visitors::visitors(number(1, 100_000), number(2, 10_000)),
        Some("dashboard") => dashboard::dashboard(number(1, 1_000)),
        Some("slots") => slots::slots(number(1, 5_000), number(2, 60)),
        Some("pings") => pings::pings(number(1, 10)),
        _ => {
            let _ = writeln!(std::io::stderr(), "{USAGE}");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}

/// Prints one figure: `name figure unit bound`. `bound` is the limit it must meet, or `-`.
fn figure(name: &str, figure: f64, unit: &str, bound: &str) {
    line(&format!("{name} {figure:.3} {unit} {bound}"));
}

fn line(text: &str) {
    let mut out = std::io::stdout();
    writeln!(out, "{text}").and_then(|()| out.flush()).expect("standard output is open");
}

/// Returns the current time in epoch ms.
#[allow(clippy::disallowed_methods, reason = "a benchmark has no injected clock")]
fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("the epoch is over");
    i64::try_from(since.as_millis()).expect("the time fits")
}

/// Returns true if an HTTP/1.1 response has arrived in full, by its `Content-Length`.
fn is_whole(answer: &[u8]) -> bool {
    let Some(head) = answer.windows(4).position(|four| four == b"\r\n\r\n") else { return false };
    let text = String::from_utf8_lossy(&answer[..head]).to_ascii_lowercase();
    let length = text.lines().find_map(|line| line.strip_prefix("content-length: "));
    answer.len() >= head + 4 + length.and_then(|length| length.parse::<usize>().ok()).unwrap_or(0)
}

/// Returns the value below which the share `share` (0 to 1) of the sorted values lies.
fn quantile(sorted: &[i64], share: f64) -> f64 {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "an index")]
    let at = (sorted.len().saturating_sub(1) as f64 * share) as usize;
    #[allow(clippy::cast_precision_loss, reason = "milliseconds")]
    sorted.get(at).map_or(f64::NAN, |&found| found as f64)
}
