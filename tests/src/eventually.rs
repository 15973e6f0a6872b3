//! Waiting for a condition, with a limit: the one place of the tests that lets time pass.

use std::fs::File;
use std::io::Write;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use parallax_core::time::Timestamp;

/// How often a condition is looked at where nothing else is said.
const PERIOD: Duration = Duration::from_millis(50);

/// Names a file that gets one line for every test left out.
const SKIP_LOG: &str = "PARALLAX_SKIP_LOG";

/// Begins every line with a measured figure.
pub(crate) const FIGURE: &str = "figure: ";

/// Between two looks by the API: a key may ask 120 times a minute.
pub const API_PERIOD: Duration = Duration::from_secs(1);

/// Waits until `probe` gives a value, and gives it back. Panics with `what` when `limit` has passed.
pub async fn eventually<T>(what: &str, limit: Duration, probe: impl AsyncFnMut() -> Option<T>) -> T {
    eventually_every(PERIOD, what, limit, probe).await
}

/// As [`eventually`], looking once in `period`.
pub async fn eventually_every<T>(
    period: Duration,
    what: &str,
    limit: Duration,
    mut probe: impl AsyncFnMut() -> Option<T>,
) -> T {
    let begun = Instant::now();
    loop {
        if let Some(value) = probe().await {
            return value;
        }
        assert!(begun.elapsed() < limit, "not within {limit:?}: {what}");
        tokio::time::sleep(period).await;
    }
}

/// Looks once in `period` for the length of `span`; panics with what `check` says as soon as it finds fault.
pub async fn holds(period: Duration, span: Duration, mut check: impl AsyncFnMut() -> Result<(), String>) {
    let begun = Instant::now();
    while begun.elapsed() < span {
        if let Err(fault) = check().await {
            panic!("after {:?} of {span:?}: {fault}", begun.elapsed());
        }
        tokio::time::sleep(period).await;
    }
}

/// Prints one line with a measured time and its bound; shown also when the test passes.
pub fn figure(name: &str, took: Duration, bound: Duration) {
    let word = if took <= bound { "pass" } else { "fail" };
    let line =
        format!("{FIGURE}{name}: {:.1} s, at most {:.1} s, {word}", took.as_secs_f64(), bound.as_secs_f64());
    // Straight to the stream: a passing test's captured output is thrown away.
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// Prints one line with counts; shown also when the test passes.
pub fn note(words: &str) {
    let _ = writeln!(std::io::stdout(), "{FIGURE}{words}");
}

/// Says that a test was left out, where it can be counted.
pub fn leave_out(test: &str, what: &str, reason: &str) {
    let line = format!("{test}: left out, {what}: {}", reason.lines().next_back().unwrap_or_default());
    let _ = writeln!(std::io::stderr(), "{line}");
    if let Some(path) = std::env::var_os(SKIP_LOG) {
        let file = File::options().create(true).append(true).open(path);
        file.and_then(|mut file| writeln!(file, "{line}")).expect("the skip log can be written");
    }
}

/// Blocks until `probe` is true or `limit` has passed; says which. For clean-up, where no runtime may be left.
pub(crate) fn blocks_until(limit: Duration, mut probe: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    while !probe() {
        if begun.elapsed() >= limit {
            return false;
        }
        std::thread::park_timeout(Duration::from_millis(10));
    }
    true
}

/// The time on this host's wall.
#[expect(
    clippy::disallowed_methods,
    reason = "the service under test reads the real clock, and tests compare with it"
)]
pub fn wall_clock() -> Timestamp {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is past 1970");
    Timestamp::from_millis(i64::try_from(since_epoch.as_millis()).expect("the clock is before the year 9999"))
}
