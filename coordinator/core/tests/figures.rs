//! Worked examples of the two figures that a page shows for a monitor: response time and uptime.

use parallax_core::latency::{RegionLatencies, mean_ms};
use parallax_core::observation::RoundOutcome;
use parallax_core::uptime::RoundTally;
use parallax_core::vantage::VantageNo;

const FRANKFURT: VantageNo = VantageNo(1);
const PARIS: VantageNo = VantageNo(2);
const OSLO: VantageNo = VantageNo(3);

fn region(readings: &[(VantageNo, &[u32])]) -> RegionLatencies {
    let mut region = RegionLatencies::default();
    for (vantage, latencies) in readings {
        latencies.iter().for_each(|latency| region.add(*vantage, *latency));
    }
    region
}

#[test]
fn a_region_with_one_vantage_has_its_median() {
    assert_eq!(region(&[(FRANKFURT, &[120, 100, 400])]).median_ms(), Some(120.0));
    assert_eq!(region(&[(FRANKFURT, &[100, 101])]).median_ms(), Some(100.5));
}

#[test]
fn a_distant_vantage_is_leveled_to_the_fastest() {
    // Medians 100 and 180; Oslo's readings are shifted by -80 to 90, 100, 150.
    // Together: 80, 90, 100, 100, 120, 150: the median is 100. Without normalization it would be 145.
    let region = region(&[(FRANKFURT, &[80, 100, 120]), (OSLO, &[170, 180, 230])]);
    assert_eq!(region.median_ms(), Some(100.0));
}

#[test]
fn a_slow_hour_of_one_place_still_shows() {
    let region = region(&[(FRANKFURT, &[49, 50, 51, 300, 310]), (OSLO, &[88, 90, 91, 250, 300])]);
    // Medians 51 and 91, so Oslo's readings are shifted by -40. Together 48, 49, 50, 50, 51, 51, 210, 260, 300, 310.
    assert_eq!(region.median_ms(), Some(51.0));
}

#[test]
fn a_vantage_with_less_than_a_tenth_of_the_readings_is_left_out() {
    // Paris has 1 of 11 readings: neither its low level nor its reading counts.
    let mut readings = region(&[(FRANKFURT, &[200; 10]), (PARIS, &[10])]);
    assert_eq!(readings.median_ms(), Some(200.0));
    // 2 of 12 is more than a tenth: its median of 10 becomes the level, and Frankfurt's readings are shifted to it.
    readings.add(PARIS, 10);
    assert_eq!(readings.median_ms(), Some(10.0));
}

#[test]
fn exactly_a_tenth_is_enough() {
    assert_eq!(region(&[(FRANKFURT, &[200; 9]), (PARIS, &[10])]).median_ms(), Some(10.0));
}

#[test]
fn no_reading_is_shifted_below_a_millisecond() {
    // Medians 2 and 100: Oslo's 1, 1 would be shifted to -97.
    let region = region(&[(FRANKFURT, &[2, 2, 2]), (OSLO, &[1, 1, 100, 100, 100])]);
    // Together 1, 1, 2, 2, 2, 2, 2, 2.
    assert_eq!(region.median_ms(), Some(2.0));
}

#[test]
fn a_median_at_the_floor_is_one_millisecond() {
    // Medians 1 and 50, so Oslo's readings are shifted by -49: nothing is left above the floor.
    let region = region(&[(FRANKFURT, &[1]), (OSLO, &[1, 1, 1, 1, 50, 50, 50, 50, 50])]);
    assert_eq!(region.median_ms(), Some(1.0));
}

#[test]
fn several_regions_are_averaged_and_rounded() {
    let europe = region(&[(FRANKFURT, &[100])]);
    let asia = region(&[(PARIS, &[201])]);
    let silent = RegionLatencies::default();
    assert_eq!(mean_ms([&europe, &asia]), Some(151));
    assert_eq!(mean_ms([&europe, &asia, &silent]), Some(151));
    assert_eq!(mean_ms([&europe]), Some(100));
    assert_eq!(mean_ms([&silent]), None);
    assert_eq!(mean_ms([]), None);
}

#[test]
fn a_day_with_one_failed_round_of_8640_is_99_988_percent_up() {
    // Six regions, one round a minute.
    let words = (0..8640).map(|n| if n == 77 { RoundOutcome::Failed } else { RoundOutcome::Passed });
    assert_eq!(words.collect::<RoundTally>().percent(), Some(99.988));
}
