//! The account's plan decides which slow threshold applies.

use parallax_core::account::Account;
use parallax_core::plan::Plan;
use parallax_store::samples;

use super::*;

#[tokio::test]
async fn a_threshold_of_a_region_counts_where_the_plan_uses_regions() {
    for (plan, slow) in [(Plan::Free, [0, 0]), (Plan::Hobby, [1, 0]), (Plan::Pro, [1, 0])] {
        let store = Store::in_memory().unwrap();
        let account = Account { plan, ..samples::account(1) };
        let own = Some(BTreeMap::from([(Region::Asia, 90)]));
        let mut batch = Batch::new();
        batch.write(account).write(page()).write(Monitor { slow_thresholds: own, ..monitor(SLOT) });
        store.commit(batch).await.unwrap();
        let mut world = World::of(store);
        // Faster than 200 ms, the threshold everywhere else.
        world.take(&[passed(Region::Asia, 0), passed(Region::Europe, 0)]).await;
        world.upkeep(at(2 * HOUR)).await;
        let hours = world.history.hours(world.store.reader().as_ref(), monitor_no(SLOT), 0..i64::MAX).unwrap();
        let of_hour = hours.values().next().unwrap();
        let counts = [Region::Asia, Region::Europe].map(|region| of_hour[&region].counts);
        assert_eq!((counts.map(|it| it.slow), counts.map(|it| it.passed)), (slow, [1, 1]), "{plan:?}");
    }
}
