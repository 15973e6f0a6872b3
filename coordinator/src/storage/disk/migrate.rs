//! Migration from an older schema: a snapshot first, then one step after another, each atomic and durable.
//!
//! A step with many writes does them in slices that may be repeated, and writes the schema number with the last.

use std::fs;

use parallax_core::page::Page;

use super::layout::{self, META_KEY, PAGES, SCHEMA, SCHEMA_KEY};
use super::load::list;
use super::meta::Meta;
use super::old::PageOfSchema4;
use super::sealing::Records;
use super::writer::Durable;
use super::{Shared, failed, io_failed, record, snapshot, snapshots};
use crate::storage::{Result, StoreError};

/// A migration step: adds its changes to the batch, except the schema number, and returns the state after it.
type Step = fn(&Records, &mut sled::Batch, Meta) -> Result<Meta>;

/// The steps, starting with schema 1 to 2.
const STEPS: [Step; SCHEMA as usize - 1] = [to_schema_2, to_schema_3, to_schema_4, to_schema_5];

/// Migrates a verified store of an older schema to this one.
pub(super) fn migrate(shared: &Shared, found: u32, mut meta: Meta, durable: &mut Durable) -> Result<Meta> {
    let folder = snapshots(&shared.folder);
    fs::create_dir_all(&folder).map_err(io_failed)?;
    let file = folder.join(format!("before-schema-{SCHEMA}.snapshot"));
    snapshot::export(shared, found, &file, true)?;
    tracing::info!(
        from = found, to = SCHEMA, snapshot = %file.display(),
        "migrating the store; the snapshot has its state before",
    );
    for (step, to) in STEPS.iter().zip(2..).skip(found.saturating_sub(1) as usize) {
        let mut batch = sled::Batch::default();
        meta = step(&shared.records, &mut batch, meta)?;
        meta.group += 1;
        meta.chain = crc32c::crc32c_append(meta.chain, &u32::to_le_bytes(to));
        batch.insert(SCHEMA_KEY, record::encode(SCHEMA_KEY, &to, None)?.head);
        batch.insert(META_KEY, state_of(to, meta)?);
        shared.db.apply_batch(batch).map_err(failed)?;
        durable.make(shared, &meta)?;
    }
    Ok(meta)
}

/// Encodes the state for that schema.
fn state_of(schema: u32, meta: Meta) -> Result<Vec<u8>> {
    if (2..=SCHEMA).contains(&schema) {
        Ok(record::encode(META_KEY, &meta, None)?.head)
    } else {
        Err(StoreError::Damaged(format!("schema {schema} can't be written any more")))
    }
}

/// Adds the position of the first event to the state: until now, always the first ever.
fn to_schema_2(_: &Records, _: &mut sled::Batch, meta: Meta) -> Result<Meta> {
    Ok(Meta { first_event: 1, ..meta })
}

/// Hours that are not compacted stay as they are: both forms are read.
fn to_schema_3(_: &Records, _: &mut sled::Batch, meta: Meta) -> Result<Meta> {
    Ok(meta)
}

/// Nothing to convert: schema 3 has no alerts or subscribers.
fn to_schema_4(_: &Records, _: &mut sled::Batch, meta: Meta) -> Result<Meta> {
    Ok(meta)
}

/// Adds the new page fields with values that keep its appearance, and an index of custom hostnames.
fn to_schema_5(tree: &Records, batch: &mut sled::Batch, mut meta: Meta) -> Result<Meta> {
    let mut put = |key: &[u8], encoded: record::Encoded| {
        batch.insert(key, encoded.head);
        encoded.more.into_iter().for_each(|(part, bytes)| batch.insert(part, bytes));
    };
    for (key, (revision, old)) in list::<(u64, PageOfSchema4)>(tree, tree.scan_prefix(PAGES))? {
        let page = Page::from(old);
        if let Some(host) = &page.custom_domain {
            let key = layout::own_host(host);
            put(&key, record::encode(&key, &page.id, None)?);
            meta.records += 1;
        }
        put(&key, record::encode(&key, &(revision, page), None)?);
    }
    Ok(meta)
}
