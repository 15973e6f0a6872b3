//! Waiting for conditions with a timeout: the only place in the tests that lets time pass.

use std::fs::File;
use std::io::Write;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use parallax_core::time::Timestamp;

/// Default polling interval.
const PERIOD: Duration = Duration::from_millis(50);

/// Environment variable with a file that gets one line for every skipped test.
const SKIP_LOG: &str = "PARALLAX_SKIP_LOG";

/// Prefix of lines with measured figures.
pub(crate) const FIGURE: &str = "figure: ";

/// Polling interval through the API: a key may send 120 requests a minute.
pub const API_PERIOD: Duration = Duration::from_secs(1);

/// Polls `probe` until it returns a value, and returns that. Panics with `what` after `limit`.
pub async fn eventually<T>(what: &str, limit: Duration, probe: impl AsyncFnMut() -> Option<T>) -> T {
    eventually_every(PERIOD, what, limit, probe).await
}

/// As [`eventually`], polling once per `period`.
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

/// Runs `check` once per `period` for `span`; panics with its error at the first failure.
pub async fn holds(period: Duration, span: Duration, mut check: impl AsyncFnMut() -> Result<(), String>) {
    let begun = Instant::now();
    while begun.elapsed() < span {
        if let Err(fault) = check().await {
            panic!("after {:?} of {span:?}: {fault}", begun.elapsed());
        }
        tokio::time::sleep(period).await;
    }
}

/// Prints one line with a measured time and its bound, also when the test passes.
pub fn print_figure(name: &str, took: Duration, bound: Duration) {
    let word = if took <= bound { "pass" } else { "fail" };
    let line = format!("{FIGURE}{name}: {:.1} s, at most {:.1} s, {word}", took.as_secs_f64(), bound.as_secs_f64());
    // Written directly: the captured output of a passing test is discarded.
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// Prints one line, also when the test passes.
pub fn print_note(words: &str) {
    let _ = writeln!(std::io::stdout(), "{FIGURE}{words}");
}

/// Records a test as skipped, so that `tests/run` counts it.
pub fn skip_test(test: &str, what: &str, reason: &str) {
    let line = format!("{test}: skipped, {what}: {}", reason.lines().next_back().unwrap_or_default());
    let _ = writeln!(std::io::stderr(), "{line}");
    if let Some(path) = std::env::var_os(SKIP_LOG) {
        let file = File::options().create(true).append(true).open(path);
        file.and_then(|mut file| writeln!(file, "{line}")).expect("the skip log can be written");
    }
}

/// Blocks until `probe` returns true or `limit` has passed; returns whether it did. For clean-up code that may have no
/// runtime.
pub(crate) fn block_until(limit: Duration, mut probe: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    while !probe() {
        if begun.elapsed() >= limit {
            return false;
        }
        std::thread::park_timeout(Duration::from_millis(10));
    }
    true
}

/// Returns the current wall-clock time of this host.
#[expect(clippy::disallowed_methods, reason = "the service under test reads the real clock, and tests compare with it")]
pub fn wall_clock() -> Timestamp {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is past 1970");
    Timestamp::from_millis(i64::try_from(since_epoch.as_millis()).expect("the clock is before the year 9999"))
}
