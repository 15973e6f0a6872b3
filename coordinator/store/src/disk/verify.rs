//! Checks when a store is opened: it must have reached its watermark, and nothing in it may be missing.

use sled::{IVec, Tree};

use super::integrity::IntegrityCheck;
use super::layout::{self, SCHEMA};
use super::meta::StoreState;
use super::{cache_eviction, engine_error, record};
use crate::{Result, StoreError};

/// Newest events checked in a store that is not read completely.
const EVENTS: u64 = 10_000;

/// Returns the store's schema and state, verified to be no older than the watermark; `None` for a new store.
pub(super) fn verify_state(tree: &Tree, watermark: Option<(u64, u32)>) -> Result<Option<(u32, StoreState)>> {
    let none = |_: &[u8]| Ok(None::<IVec>);
    let schema = tree.get(layout::SCHEMA_KEY).map_err(engine_error)?;
    let schema: Option<u32> = schema.map(|head| record::decode(layout::SCHEMA_KEY, &head, none)).transpose()?;
    if let Some(found) = schema.filter(|schema| *schema > SCHEMA) {
        return Err(StoreError::Newer { found, known: SCHEMA });
    }
    let (Some(schema), Some(meta)) = (schema, tree.get(layout::META_KEY).map_err(engine_error)?) else {
        if watermark.is_none() && tree.is_empty() {
            return Ok(None);
        }
        return damaged("its state record is missing".to_owned());
    };
    let meta = StoreState::decode(schema, &meta)?;
    match watermark {
        // The very first group may have been interrupted before its mark.
        None if meta.group > 1 => damaged("its watermark is missing".to_owned()),
        Some((group, _)) if meta.group < group => damaged(format!(
            "it ends at group {} of commits, and {group} were made durable: the newest are lost",
            meta.group
        )),
        Some((group, chain)) if meta.group == group && meta.chain != chain => {
            damaged(format!("its group {group} of commits differs from the one that was made durable"))
        }
        None | Some(_) => Ok(Some((schema, meta))),
    }
}

/// Verifies the records: all of them, or in a large store only the documents and the ends of both journals.
pub(super) fn verify_records(tree: &Tree, meta: &StoreState, verify_all: bool) -> Result<()> {
    if verify_all {
        let mut check = IntegrityCheck::default();
        for item in tree.iter() {
            let (key, value) = item.map_err(engine_error)?;
            check.add(&key, &value)?;
            cache_eviction::record_uses(tree, std::iter::once(&*key));
        }
        return check.finish().map(drop);
    }
    expect("documents", meta.documents, count(tree, tree.scan_prefix(layout::DOCUMENTS))?)?;
    journal("readings", tree, layout::readings, meta.first_reading, meta.last_reading)?;
    let newest = meta.last_event.saturating_sub(EVENTS).saturating_add(1);
    journal("events", tree, layout::event, meta.first_event.max(newest), meta.last_event)
}

fn journal(name: &str, tree: &Tree, key: fn(u64) -> layout::TreeKey, first: u64, last: u64) -> Result<()> {
    let expected = last.saturating_add(1).saturating_sub(first);
    expect(name, expected, count(tree, tree.range(key(first)..=key(u64::MAX)))?)?;
    // There are as many entries as numbers, and none before the first or after the last: so there is no gap.
    match tree.get_lt(key(u64::MAX)).map_err(engine_error)? {
        Some((newest, _)) if expected > 0 && *newest != *key(last) => {
            damaged(format!("its {name} do not end at {last}"))
        }
        Some(_) | None => Ok(()),
    }
}

fn count(tree: &Tree, items: sled::Iter) -> Result<u64> {
    let mut count = 0;
    for item in items {
        let (key, head) = item.map_err(engine_error)?;
        record::payload(&key, &head, |part| tree.get(part).map_err(engine_error))?;
        cache_eviction::record_uses(tree, std::iter::once(&*key));
        count += 1;
    }
    Ok(count)
}

fn expect(name: &str, expected: u64, actual: u64) -> Result<()> {
    if expected == actual { Ok(()) } else { damaged(format!("it has {actual} {name} instead of {expected}")) }
}

fn damaged<T>(problem: String) -> Result<T> {
    Err(StoreError::Damaged(problem))
}
