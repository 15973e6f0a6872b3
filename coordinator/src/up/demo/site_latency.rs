//! Response times of the demo's sites: by the distance of the client's region, with a rhythm of the day and the week and
//! some jitter. The sites delay their responses by them, and the simulated history has the same.

use parallax_core::assign::stable_hash;
use parallax_core::time::{DAY, HOUR, MINUTE, Timestamp};
use parallax_core::vantage::Region;

/// Response time that the rhythm and jitter keep below, in milliseconds, for bases up to [`MAX_BASE_MS`].
#[cfg(test)]
pub(super) const MAX_MS: u32 = 400;
/// Highest base of a site, in milliseconds.
#[cfg(test)]
pub(super) const MAX_BASE_MS: u32 = 110;
/// Local time of the daily peak, in milliseconds after midnight.
const PEAK: i64 = 14 * HOUR;
/// Share of the response time in permille at night, and what the peak adds to it.
const NIGHT_PERMILLE: i64 = 850;
const PEAK_PERMILLE: i64 = 330;
/// Share in permille at weekends, and the least and the range of what differs from day to day.
const WEEKEND_PERMILLE: i64 = 930;
const DAY_PERMILLE: i64 = 920;
const DAY_SPREAD: u64 = 121;
/// One response in this many takes a tenth longer.
const OUTLIER_EVERY: u64 = 48;

/// Response time in milliseconds of a site that takes `base_ms` nearby. `noise` is any number that differs from response
/// to response.
pub(super) fn response_ms(base_ms: u32, region: Region, at: Timestamp, noise: u64) -> u32 {
    let (distance_ms, zone_hours) = distance(region);
    let local = at.as_millis() + zone_hours * HOUR;
    let (local_day, local) = (local.div_euclid(DAY), local.rem_euclid(DAY));
    let from_peak = (local - PEAK).abs();
    let from_peak = from_peak.min(DAY - from_peak) / MINUTE;
    let half_day = DAY / 2 / MINUTE;
    let rhythm = NIGHT_PERMILLE + PEAK_PERMILLE * (half_day - from_peak) / half_day;
    let rhythm = rhythm * of_day(local_day) / 1000;
    let jitter = 950 + i64::try_from(noise % 101).unwrap_or(0);
    let outlier = if (noise / 101).is_multiple_of(OUTLIER_EVERY) { 1100 } else { 1000 };
    let millis = (i64::from(base_ms) + distance_ms) * rhythm * jitter / 1000 * outlier / 1_000_000;
    u32::try_from(millis.max(1)).unwrap_or(u32::MAX)
}

/// Load of a day since the epoch, in permille.
fn of_day(day: i64) -> i64 {
    let noise = i64::try_from(stable_hash(&day.to_be_bytes()) % DAY_SPREAD).unwrap_or(0);
    // The first day was a Thursday.
    let is_weekend = matches!(day.rem_euclid(7), 2 | 3);
    (DAY_PERMILLE + noise) * if is_weekend { WEEKEND_PERMILLE } else { 1000 } / 1000
}

/// Additional milliseconds for the way from a region, and the hours by which its clocks are ahead of UTC.
const fn distance(region: Region) -> (i64, i64) {
    match region {
        Region::Europe => (0, 1),
        Region::NorthAmerica => (70, -5),
        Region::SouthAmerica => (130, -3),
        Region::Africa => (120, 2),
        Region::Asia => (140, 8),
        Region::Oceania => (170, 10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn median(region: Region, hour: i64) -> u32 {
        let at = Timestamp::from_millis(20_600 * DAY + hour * HOUR);
        let mut all: Vec<u32> = (0..1001).map(|noise| response_ms(100, region, at, noise * 7)).collect();
        all.sort_unstable();
        all[500]
    }

    #[test]
    fn responses_are_slower_by_day_and_from_far_away_but_never_slow() {
        assert!(median(Region::Europe, 13) > median(Region::Europe, 2) * 5 / 4);
        assert!(median(Region::Oceania, 4) > median(Region::Oceania, 16) * 5 / 4, "its day is Europe's night");
        for region in [Region::NorthAmerica, Region::Asia, Region::Oceania] {
            assert!(median(region, 12) > median(Region::Europe, 12), "{region}");
        }
        let weeks = |weekday: i64| (0..40).map(|week| of_day(week * 7 + weekday)).sum::<i64>();
        assert!(weeks(2) < weeks(0), "weekends are quieter");
        let hours = (0..24 * 400).step_by(5);
        let all = hours.flat_map(|hour| (0..101).map(move |jitter| (hour, jitter)));
        let slowest = all.map(|(hour, noise)| {
            let at = Timestamp::from_millis(20_000 * DAY + hour * HOUR);
            response_ms(MAX_BASE_MS, Region::Oceania, at, noise)
        });
        assert!(slowest.max().unwrap() < MAX_MS);
    }
}
