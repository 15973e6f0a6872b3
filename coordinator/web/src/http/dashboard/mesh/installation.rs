//! Figures of the installation in words: those that are known.

use parallax_core::time::Timestamp;
use parallax_service::mesh::InstallationFigures;

use crate::views::dashboard::duration;
use crate::views::dashboard::mesh::{authority_text, grouped};

/// Percent of free disk space under which the figure is amber.
const LOW_DISK: u64 = 10;

/// Returns the lines of the card: label, CSS class or nothing, text.
pub(super) fn installation_lines(
    figures: &InstallationFigures,
    now: Timestamp,
) -> Vec<(&'static str, &'static str, String)> {
    let mut lines = Vec::new();
    if let Some(at) = figures.snapshot_at {
        let age = duration(now.since(at));
        lines.push(("Snapshot of the store", "", format!("{age} ago, read back and verified")));
    }
    if let Some(bytes) = figures.store_bytes {
        lines.push(("Store", "", bytes_text(bytes)));
    }
    if let Some((free, capacity)) = figures.disk.filter(|(_, capacity)| *capacity > 0) {
        let percent = (u128::from(free) * 100 / u128::from(capacity)) as u64;
        let class = if percent < LOW_DISK { "slow" } else { "" };
        let text = format!("{} of {} free ({percent} %)", bytes_text(free), bytes_text(capacity));
        lines.push(("Disk", class, text));
    }
    if let Some(rounds) = figures.rounds_per_minute {
        lines.push(("Results a minute", "", format!("{}, average since the start", grouped(rounds))));
    }
    if let Some(micros) = figures.commit_micros {
        let text = format!("{}.{} ms", micros / 1000, micros % 1000 / 100);
        lines.push(("Commit", "", format!("{text}, average since the start")));
    }
    if let Some(until) = figures.authority_until {
        let (class, text) = authority_text(until, now);
        lines.push(("Certificate authority", class, text));
    }
    if let Some(version) = &figures.version {
        lines.push(("Version", "", version.clone()));
    }
    lines
}

/// Formats a number of bytes: "512 kB", "12.3 GB".
fn bytes_text(bytes: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1_000_000_000_000, "TB"), (1_000_000_000, "GB"), (1_000_000, "MB")];
    match UNITS.iter().find(|(size, _)| bytes >= *size) {
        Some((size, unit)) => format!("{}.{} {unit}", bytes / size, bytes % size / (size / 10)),
        None => format!("{} kB", bytes.div_ceil(1000)),
    }
}

#[cfg(test)]
mod tests {
    use parallax_core::time::{DAY, MINUTE};

    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_795_783_560_000);

    #[test]
    fn each_known_figure_has_a_line_and_an_unknown_one_has_none() {
        assert_eq!(installation_lines(&InstallationFigures::default(), NOW), []);
        let figures = InstallationFigures {
            version: Some("1.4.0".to_owned()),
            snapshot_at: Some(NOW - 40 * MINUTE),
            store_bytes: Some(1_250_000_000),
            disk: Some((3_000_000_000, 40_000_000_000)),
            rounds_per_minute: Some(12_345),
            commit_micros: Some(2_340),
            authority_until: Some(NOW + 900 * DAY),
        };
        let lines = installation_lines(&figures, NOW);
        let texts: Vec<(&str, &str)> = lines.iter().map(|(_, class, text)| (*class, text.as_str())).collect();
        assert_eq!(
            texts,
            [
                ("", "40 min ago, read back and verified"),
                ("", "1.2 GB"),
                ("slow", "3.0 GB of 40.0 GB free (7 %)"),
                ("", "12,345, average since the start"),
                ("", "2.3 ms, average since the start"),
                ("", "ends on 15 May 2029, in 900 days"),
                ("", "1.4.0"),
            ]
        );
    }

    #[test]
    fn bytes_have_the_unit_that_matters() {
        for (bytes, expected) in
            [(0, "0 kB"), (512_000, "512 kB"), (1_500_000, "1.5 MB"), (2_000_000_000_000, "2.0 TB")]
        {
            assert_eq!(bytes_text(bytes), expected);
        }
    }
}
