//! The account's plan decides which slow threshold applies.

use parallax_core::account::Account;
use parallax_core::plan::Plan;
use parallax_store::samples;

use super::*;

#[tokio::test]
async fn a_slow_threshold_of_a_region_applies_only_if_the_plan_allows_it() {
    for (plan, slow) in [(Plan::Free, [0, 0]), (Plan::Hobby, [1, 0]), (Plan::Pro, [1, 0])] {
        let store = Store::in_memory().unwrap();
        let account = Account { plan, ..samples::account(1) };
        let slow_thresholds = Some(BTreeMap::from([(Region::Asia, 90)]));
        let mut batch = Batch::new();
        batch.write(account).write(page()).write(Monitor { slow_thresholds, ..monitor(SLOT) });
        store.commit(batch).await.unwrap();
        let mut fixture = Fixture::over_existing(store);
        // Faster than 200 ms, the threshold everywhere else.
        fixture.append(&[passed(Region::Asia, 0), passed(Region::Europe, 0)]).await;
        fixture.upkeep(at(2 * HOUR)).await;
        let hours = fixture.history.hours(fixture.store.reader().as_ref(), monitor_no(SLOT), 0..i64::MAX).unwrap();
        let rollups = hours.values().next().unwrap();
        let counts = [Region::Asia, Region::Europe].map(|region| rollups[&region].counts);
        assert_eq!((counts.map(|it| it.slow), counts.map(|it| it.passed)), (slow, [1, 1]), "{plan:?}");
    }
}
