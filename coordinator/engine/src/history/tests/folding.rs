//! Hours folded into days read back unchanged, and expired days are deleted.

use super::*;

impl Fixture {
    /// Asserts that exactly the appended readings that are due before `until` are returned.
    fn assert_reads_back(&self, until: Timestamp) {
        let read = self.store.reader();
        for region in Region::ALL {
            let key = (SLOT, monitor_no(SLOT));
            let readings = self.history.readings(read.as_ref(), key, region, at(-9 * DAY), until).unwrap();
            let mut expected: Vec<BlockReading> =
                self.raw.values().filter(|it| it.region == region && it.due < until).map(BlockReading::from).collect();
            expected.sort_by_key(|sample| (sample.due, sample.round));
            assert_eq!(readings, expected, "{region:?}");
        }
    }

    /// Runs the upkeep in each hour of a day, counted from the start.
    async fn run_day(&self, day: i64) {
        for hour in 1..=24 {
            self.upkeep(at(day * DAY + hour * HOUR)).await;
        }
    }
}

#[tokio::test]
async fn old_blocks_are_deleted_and_roll_ups_kept() {
    let mut fixture = Fixture::new().await;
    fixture.append(&[passed(Region::Europe, 0)]).await;
    fixture.upkeep(at(2 * HOUR)).await;
    let rounds_a_day = DAY / INTERVAL;
    fixture.append(&[passed(Region::Europe, 32 * rounds_a_day)]).await;
    fixture.run_day(32).await;
    let read = fixture.store.reader();
    let block_count = |region| read.blocks(monitor_no(SLOT), region, 0..i64::MAX).unwrap().len();
    assert_eq!(block_count(Region::Europe), 1);
    assert_eq!(read.hours(monitor_no(SLOT), 0..i64::MAX).unwrap().len(), 2);
    // A monitor that is no longer checked loses its readings, too.
    fixture.run_day(64).await;
    assert_eq!(block_count(Region::Europe), 0);
    assert_eq!(read.hours(monitor_no(SLOT), 0..i64::MAX).unwrap().len(), 2);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4))]

    #[test]
    fn folded_readings_read_back_unchanged(
        late in proptest::collection::vec((0_usize..3, 0_i64..60, 1_i64..50, 0_u16..4, 0_u8..12, 1_u32..400), 0..60),
        restart_hour in 0_i64..60,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let options = parallax_store::samples::small_options();
            let mut fixture = Fixture::with_monitors(Store::on_disk(folder.path(), options).unwrap()).await;
            let regions = [Region::Europe, Region::Asia, Region::Africa];
            for hour in 0..60 {
                let first = hour * HOUR / INTERVAL;
                let mut readings: Vec<Reading> =
                    (first..first + HOUR / INTERVAL).map(|n| passed(Region::Europe, n)).collect();
                // Some of them belong to a folded day.
                for (region, _, hours_back, vantage, outcome, latency) in late.iter().filter(|it| it.1 == hour) {
                    let n = first - hours_back * HOUR / INTERVAL + i64::from(*vantage);
                    readings.push(reading(regions[*region], n, *vantage, outcome_of(*outcome), Some(*latency)));
                }
                fixture.append(&readings).await;
                fixture.upkeep(at((hour + 1) * HOUR)).await;
                if hour == restart_hour {
                    fixture.restart();
                }
                if hour % 12 == 11 {
                    fixture.check(at((hour + 1) * HOUR));
                    fixture.assert_reads_back(at((hour + 2) * HOUR));
                }
            }
            let records = fixture.store.reader().verify().unwrap().records;
            assert!(records < 80, "{records} records for three days of hours");
            fixture.run_day(40).await;
            fixture.raw.clear();
            fixture.assert_reads_back(at(41 * DAY));
        });
    }
}
