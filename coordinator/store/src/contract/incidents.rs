//! Contract for incidents, windows, series and deploys: order, pages, and deletion.

use parallax_core::id::{DeployId, IncidentId, SeriesId};
use parallax_core::incident::{Incident, MonitorImpact};
use parallax_core::uptime::TimeSpan;

use crate::samples::*;
use crate::{Op, PageCounts, StoreRead, VersionedValue};

fn numbers(incidents: crate::Result<Vec<VersionedValue<Incident>>>) -> Vec<u128> {
    incidents.unwrap().iter().map(|incident| incident.value.id.to_u128()).collect()
}

fn listed(reader: &dyn StoreRead, open: bool, before: Option<(i64, u128)>, limit: usize) -> Vec<u128> {
    let before = before.map(|(started, n)| (at(started), IncidentId::from_u128(n)));
    numbers(reader.incidents_of(page_id(1), open, before, limit))
}

pub(super) fn incidents_are_listed_newest_first_and_optionally_only_open_ones(store: &mut TestStore) {
    store.write(incident(9, 1, 10, true));
    assert_eq!(store.reader.incident(IncidentId::from_u128(9)), Ok(None), "it belongs to no page");
    store.write(page(1, 1, "one"));
    store.write(page(2, 1, "two"));
    for (n, started, open) in [(1, 30, true), (2, 10, false), (3, 20, true), (4, 20, false), (5, -5, true)] {
        store.write(incident(n, 1, started, open));
    }
    store.write(window(6, 2, 25, true));
    let reader = store.reader.as_ref();
    assert_eq!(listed(reader, false, None, 9), [1, 4, 3, 2, 5]);
    assert_eq!(listed(reader, true, None, 9), [1, 3, 5]);
    assert_eq!(listed(reader, false, None, 2), [1, 4]);
    assert_eq!(
        (reader.oldest_incident(page_id(1)), reader.oldest_incident(page_id(2))),
        (Ok(Some(at(-5))), Ok(Some(at(25))))
    );
    assert_eq!(reader.oldest_incident(page_id(3)), Ok(None));
    assert_eq!(numbers(reader.oldest_incidents(page_id(1), 3)), [5, 2, 3]);
    assert_eq!(reader.page_counts(page_id(1)).unwrap().incidents, 5);
    assert_eq!(listed(reader, false, Some((20, 4)), 2), [3, 2]);
    assert_eq!(listed(reader, true, Some((20, 4)), 9), [3, 5]);
    assert_eq!(numbers(reader.open_incidents()), [5, 3, 1, 6]);
    // An incident that is moved or closed leaves its old list entries.
    store.write(incident(3, 1, 40, false));
    assert_eq!(listed(store.reader.as_ref(), false, None, 9), [3, 1, 4, 2, 5]);
    assert_eq!(listed(store.reader.as_ref(), true, None, 9), [1, 5]);
    store.write(Op::DeleteIncident(IncidentId::from_u128(1)));
    assert_eq!(listed(store.reader.as_ref(), true, None, 9), [5]);
    let read = store.reader.incident(IncidentId::from_u128(3)).unwrap().unwrap();
    assert_eq!(read.value, incident(3, 1, 40, false));
}

pub(super) fn windows_and_series_are_found(store: &mut TestStore) {
    store.write(page(1, 1, "one"));
    for (n, started, open) in [(1, 10, true), (2, 20, false), (3, 30, true)] {
        store.write(window(n, 1, started, open));
    }
    store.write(incident(4, 1, 15, true));
    let newest = |store: &TestStore, from, to, limit| -> Vec<TimeSpan> {
        let windows = store.reader.windows_of(page_id(1), None, at(from)..at(to), limit).unwrap();
        windows.iter().map(|window| window.span).collect()
    };
    let spans = |store: &TestStore, from, to| newest(store, from, to, 9);
    let span = |from, to| TimeSpan { from: at(from), to: at(to) };
    assert_eq!(spans(store, 0, 99), [span(10, 20), span(20, 25), span(30, 40)]);
    assert_eq!(spans(store, 20, 30), [span(20, 25)]);
    assert_eq!(spans(store, 20, 20), []);
    assert_eq!(newest(store, 0, 99, 2), [span(20, 25), span(30, 40)]);
    assert_eq!(newest(store, 0, 30, 1), [span(20, 25)]);
    assert_eq!(newest(store, 0, 99, 0), []);
    // A query for one monitor returns up to the limit of its own.
    store.write(Incident {
        affected: vec![MonitorImpact { monitor: monitor_id(2), impact: None }],
        ..window(5, 1, 35, true)
    });
    store.write(Incident { affected: Vec::new(), ..window(6, 1, 5, false) });
    let covering = |n, limit| -> Vec<TimeSpan> {
        let windows = store.reader.windows_of(page_id(1), Some(monitor_id(n)), at(0)..at(99), limit).unwrap();
        windows.iter().map(|window| window.span).collect()
    };
    assert_eq!((covering(1, 1), covering(2, 1)), (vec![span(30, 40)], vec![span(35, 45)]));
    assert_eq!(covering(2, 2), [span(5, 10), span(35, 45)], "a window without monitors covers the page");
    assert_eq!(covering(3, 9), [span(5, 10)]);
    store.write(Op::DeleteIncident(IncidentId::from_u128(5)));
    store.write(Op::DeleteIncident(IncidentId::from_u128(6)));
    store.write(Op::DeleteIncident(IncidentId::from_u128(2)));
    assert_eq!(spans(store, 20, 30), []);
    store.write(series(1, 1, None));
    store.write(series(2, 1, Some(3)));
    store.write(series(3, 7, None));
    assert_eq!(
        store.reader.page_counts(page_id(1)),
        Ok(PageCounts { open_incidents: 3, running_series: 1, incidents: 3 })
    );
    assert_eq!(store.reader.page_counts(page_id(2)), Ok(PageCounts::default()));
    let running: Vec<_> = store.reader.running_series().unwrap().into_iter().map(|series| series.value).collect();
    assert_eq!(running, [series(1, 1, None)]);
    let stopped = |store: &TestStore, n| store.reader.series(SeriesId::from_u128(n)).unwrap().map(|it| it.value);
    assert_eq!(stopped(store, 2), Some(series(2, 1, Some(3))));
    store.write(series(4, 1, Some(3)));
    store.write(series(5, 1, Some(3)));
    store.write(Op::DeleteStoppedSeries(page_id(1), 1));
    let remaining = [1, 2, 4, 5].map(|n| stopped(store, n).is_some());
    assert_eq!(remaining, [true, false, false, true], "the newest stopped series stays, and the running ones");
}

pub(super) fn deploys_are_listed_newest_first(store: &mut TestStore) {
    store.write(page(1, 1, "one"));
    for (n, deployed_at) in [(1, 30), (2, 10), (3, 20), (4, 20)] {
        store.write(deploy(n, 1, deployed_at));
    }
    store.write(deploy(5, 2, 99));
    let versions = |store: &TestStore, limit| -> Vec<u128> {
        let deploys = store.reader.deploys_of(page_id(1), limit).unwrap();
        deploys.iter().map(|deploy| deploy.value.id.to_u128()).collect()
    };
    assert_eq!((versions(store, 9), versions(store, 2)), (vec![1, 4, 3, 2], vec![1, 4]));
    store.write(Op::DeleteDeploy(DeployId::from_u128(4)));
    assert_eq!(versions(store, 9), [1, 3, 2]);
    assert_eq!(store.reader.deploy(DeployId::from_u128(4)), Ok(None));
}

pub(super) fn deleting_a_page_deletes_its_incidents_series_and_deploys(store: &mut TestStore) {
    store.write(page(1, 1, "one"));
    store.write(page(2, 1, "two"));
    for page in [1, 2] {
        store.write(incident(page, page, 1, true));
        store.write(window(page + 10, page, 1, false));
        store.write(series(page, page, None));
        store.write(deploy(page, page, 1));
    }
    store.write(Op::DeletePage(page_id(1)));
    let reader = store.reader.as_ref();
    assert_eq!(numbers(reader.open_incidents()), [2]);
    assert_eq!(reader.incident(IncidentId::from_u128(11)), Ok(None));
    assert_eq!((reader.running_series().unwrap().len(), reader.series(SeriesId::from_u128(1))), (1, Ok(None)));
    assert_eq!(reader.deploy(DeployId::from_u128(1)), Ok(None));
    store.write(page(1, 1, "one"));
    let reader = store.reader.as_ref();
    assert_eq!(listed(reader, false, None, 9), []);
    assert_eq!(reader.windows_of(page_id(1), None, at(0)..at(9), 9), Ok(vec![]));
    assert_eq!(reader.oldest_incident(page_id(1)), Ok(None));
    assert_eq!(reader.deploys_of(page_id(1), 9), Ok(vec![]));
}
