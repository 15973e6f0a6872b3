//! Migration from an older schema: a snapshot first, then one step after another, each atomic and durable.
//!
//! A step with many writes does them in slices that may be repeated, and writes the schema number with the last.

use std::fs;

use parallax_core::page::Page;

use super::layout::{self, META_KEY, PAGES, SCHEMA, SCHEMA_KEY};
use super::legacy_records::PageOfSchema4;
use super::meta::StoreState;
use super::record_read::list;
use super::sealed_tree::SealedTree;
use super::writer::DurableFiles;
use super::{SharedStore, engine_error, io_error, record, snapshot, snapshots_folder};
use crate::{Result, StoreError};

/// A migration step: adds its changes to the batch, except the schema number, and returns the state after it.
type MigrationStep = fn(&SealedTree, &mut sled::Batch, StoreState) -> Result<StoreState>;

/// The steps, starting with schema 1 to 2.
const STEPS: [MigrationStep; SCHEMA as usize - 1] = [to_schema_2, to_schema_3, to_schema_4, to_schema_5];

/// Migrates a verified store of an older schema to this one.
pub(super) fn migrate(
    shared: &SharedStore,
    schema: u32,
    mut meta: StoreState,
    durable: &mut DurableFiles,
) -> Result<StoreState> {
    let folder = snapshots_folder(&shared.folder);
    fs::create_dir_all(&folder).map_err(io_error)?;
    let file = folder.join(format!("before-schema-{SCHEMA}.snapshot"));
    snapshot::export(shared, schema, &file, true)?;
    tracing::info!(
        from = schema, to = SCHEMA, snapshot = %file.display(),
        "migrating the store; the snapshot has its state before",
    );
    for (step, to) in STEPS.iter().zip(2..).skip(schema.saturating_sub(1) as usize) {
        let mut batch = sled::Batch::default();
        meta = step(&shared.records, &mut batch, meta)?;
        meta.group += 1;
        meta.chain = crc32c::crc32c_append(meta.chain, &u32::to_le_bytes(to));
        batch.insert(SCHEMA_KEY, record::encode(SCHEMA_KEY, &to, None)?.head);
        batch.insert(META_KEY, encode_state(to, meta)?);
        shared.db.apply_batch(batch).map_err(engine_error)?;
        durable.make_durable(shared, &meta)?;
    }
    Ok(meta)
}

/// Encodes the state for that schema.
fn encode_state(schema: u32, meta: StoreState) -> Result<Vec<u8>> {
    if (2..=SCHEMA).contains(&schema) {
        Ok(record::encode(META_KEY, &meta, None)?.head)
    } else {
        Err(StoreError::Damaged(format!("schema {schema} can't be written any more")))
    }
}

/// Adds the position of the first event to the state: until now, always the first ever.
fn to_schema_2(_: &SealedTree, _: &mut sled::Batch, meta: StoreState) -> Result<StoreState> {
    Ok(StoreState { first_event: 1, ..meta })
}

/// Hours that are not compacted stay as they are: both forms are read.
fn to_schema_3(_: &SealedTree, _: &mut sled::Batch, meta: StoreState) -> Result<StoreState> {
    Ok(meta)
}

/// Nothing to convert: schema 3 has no alerts or subscribers.
fn to_schema_4(_: &SealedTree, _: &mut sled::Batch, meta: StoreState) -> Result<StoreState> {
    Ok(meta)
}

/// Adds the new page fields with values that keep its appearance, and an index of custom hostnames.
fn to_schema_5(tree: &SealedTree, batch: &mut sled::Batch, mut meta: StoreState) -> Result<StoreState> {
    let mut put = |key: &[u8], encoded: record::EncodedRecord| {
        batch.insert(key, encoded.head);
        encoded.pieces.into_iter().for_each(|(part, bytes)| batch.insert(part, bytes));
    };
    for (key, (revision, old)) in list::<(u64, PageOfSchema4)>(tree, tree.scan_prefix(PAGES))? {
        let page = Page::from(old);
        if let Some(host) = &page.custom_domain {
            let key = layout::custom_host(host);
            put(&key, record::encode(&key, &page.id, None)?);
            meta.records += 1;
        }
        put(&key, record::encode(&key, &(revision, page), None)?);
    }
    Ok(meta)
}
