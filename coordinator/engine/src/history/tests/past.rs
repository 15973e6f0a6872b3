//! A past that is written at once equals one that grew reading by reading.

use super::*;

/// Readings of two regions over that many hours, some of them failed or in a window.
fn past_readings(hours: i64) -> Vec<Reading> {
    let rounds = hours * HOUR / INTERVAL;
    let both = (0..rounds).flat_map(|n| {
        let failed = reading(Region::Asia, n, 2, RoundOutcome::Failed, None);
        [passed(Region::Europe, n), if n % 9 == 0 { failed } else { passed(Region::Asia, n) }]
    });
    both.collect()
}

#[tokio::test]
async fn a_past_written_at_once_reads_like_one_that_grew() {
    let readings = past_readings(60);
    let end = at(60 * HOUR);
    let span = TimeSpan { from: at(30 * HOUR), to: at(31 * HOUR) };
    let mut grown = Fixture::new().await;
    grown.windows = Arc::new(move |_, _, _| [span].into_iter().collect());
    grown.append(&readings).await;
    grown.upkeep(end + 2 * HOUR).await;

    let at_once = Fixture::new().await;
    let mut hours: BTreeMap<(Region, i64), Vec<BlockReading>> = BTreeMap::new();
    for reading in &readings {
        hours.entry((reading.region, reading.due.hour())).or_default().push(reading.into());
    }
    let past = hours.into_iter().map(|((region, hour), readings)| PastHour { region, hour, readings });
    let blocks_from = at(20 * HOUR).hour();
    let windows: TimeSpans = [span].into_iter().collect();
    let ops = seal_past(at_once.store.reader().as_ref(), &monitor(SLOT), windows, blocks_from, past).unwrap();
    assert!(ops.iter().any(|op| matches!(op, Op::CompactHistory(..))));
    at_once.store.commit(Batch { ops, ..Batch::new() }).await.unwrap();

    let (one, other) = (grown.store.reader().as_ref(), at_once.store.reader().as_ref());
    let all = 0..i64::MAX / HOUR;
    assert_eq!(one.hours(monitor_no(SLOT), all.clone()), other.hours(monitor_no(SLOT), all.clone()));
    assert_eq!(one.days(monitor_no(SLOT), all.clone()), other.days(monitor_no(SLOT), all.clone()));
    for region in [Region::Europe, Region::Asia] {
        let blocks = one.blocks(monitor_no(SLOT), region, blocks_from..i64::MAX / HOUR).unwrap();
        assert!(!blocks.is_empty());
        assert_eq!(other.blocks(monitor_no(SLOT), region, all.clone()).unwrap(), blocks);
    }
    let query = FiguresQuery { excluded: [span].into_iter().collect(), ..grown.query(at(50 * HOUR)) };
    assert_eq!(at_once.figures(&query), grown.figures(&query));
}
