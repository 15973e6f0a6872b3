//! Hours folded into days read back unchanged, and expired days are deleted.

use super::*;

impl World {
    /// Every reading appended before `until` is there, and no other.
    fn reads_back(&self, until: Timestamp) {
        let read = self.store.reader();
        for region in Region::ALL {
            let of = (SLOT, monitor_no(SLOT));
            let found = self.history.readings(read.as_ref(), of, region, at(-9 * DAY), until).unwrap();
            let mut wanted: Vec<BlockReading> =
                self.raw.values().filter(|it| it.region == region && it.due < until).map(BlockReading::from).collect();
            wanted.sort_by_key(|sample| (sample.due, sample.round));
            assert_eq!(found, wanted, "{region:?}");
        }
    }

    /// Runs the upkeep in each hour of a day, counted from the start.
    async fn day(&self, day: i64) {
        for hour in 1..=24 {
            self.upkeep(at(day * DAY + hour * HOUR)).await;
        }
    }
}

#[tokio::test]
async fn old_blocks_go_and_roll_ups_stay() {
    let mut world = World::new().await;
    world.take(&[passed(Region::Europe, 0)]).await;
    world.upkeep(at(2 * HOUR)).await;
    let rounds_a_day = DAY / INTERVAL;
    world.take(&[passed(Region::Europe, 32 * rounds_a_day)]).await;
    world.day(32).await;
    let read = world.store.reader();
    let kept = |region| read.blocks(monitor_no(SLOT), region, 0..i64::MAX).unwrap().len();
    assert_eq!(kept(Region::Europe), 1);
    assert_eq!(read.hours(monitor_no(SLOT), 0..i64::MAX).unwrap().len(), 2);
    // A monitor that is no longer checked loses its readings, too.
    world.day(64).await;
    assert_eq!(kept(Region::Europe), 0);
    assert_eq!(read.hours(monitor_no(SLOT), 0..i64::MAX).unwrap().len(), 2);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4))]

    #[test]
    fn what_is_folded_reads_back_as_it_came(
        late in proptest::collection::vec((0_usize..3, 0_i64..60, 1_i64..50, 0_u16..4, 0_u8..12, 1_u32..400), 0..60),
        again in 0_i64..60,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let options = parallax_store::samples::small_options();
            let mut world = World::over(Store::on_disk(folder.path(), options).unwrap()).await;
            let regions = [Region::Europe, Region::Asia, Region::Africa];
            for hour in 0..60 {
                let first = hour * HOUR / INTERVAL;
                let mut readings: Vec<Reading> =
                    (first..first + HOUR / INTERVAL).map(|n| passed(Region::Europe, n)).collect();
                // Some of them belong to a folded day.
                for (region, _, back, place, word, latency) in late.iter().filter(|it| it.1 == hour) {
                    let n = first - back * HOUR / INTERVAL + i64::from(*place);
                    readings.push(reading(regions[*region], n, *place, word_of(*word), Some(*latency)));
                }
                world.take(&readings).await;
                world.upkeep(at((hour + 1) * HOUR)).await;
                if hour == again {
                    world.start_again();
                }
                if hour % 12 == 11 {
                    world.check(at((hour + 1) * HOUR));
                    world.reads_back(at((hour + 2) * HOUR));
                }
            }
            let records = world.store.reader().verify().unwrap().records;
            assert!(records < 80, "{records} records for three days of hours");
            world.day(40).await;
            world.raw.clear();
            world.reads_back(at(41 * DAY));
        });
    }
}
