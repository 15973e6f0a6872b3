//! Pages in the store, with their names, pictures and hostname reservations.

use parallax_core::id::PageId;
use parallax_core::page::Page;
use parallax_core::page::branding::PictureUse;
use parallax_core::page::domain::ReservedHostname;
use parallax_core::time::Timestamp;

use super::layout;
use super::pending::PendingChanges;
use crate::Result;
use crate::batch::MAX_EXPIRED_PER_OP;

/// Stores a page, with its slug and hostname.
pub(super) fn put(pending: &mut PendingChanges<'_>, page: &Page) -> Result<()> {
    delete_index_entries(pending, page.id)?;
    pending.put(layout::slug(&page.slug), &page.id)?;
    if let Some(host) = &page.custom_domain {
        pending.put(layout::custom_host(host), &page.id)?;
    }
    pending.put(layout::page_of(page.account, page.id), &())?;
    pending.put_document(layout::page(page.id), page)
}

/// Deletes a page, with its names and pictures.
pub(super) fn delete(pending: &mut PendingChanges<'_>, id: PageId) -> Result<()> {
    delete_index_entries(pending, id)?;
    for usage in PictureUse::ALL {
        pending.delete(layout::picture(id, usage))?;
    }
    pending.delete(layout::page(id))
}

/// Stores a picture, if its page exists.
pub(super) fn put_picture(
    pending: &mut PendingChanges<'_>,
    page: PageId,
    usage: PictureUse,
    bytes: &Vec<u8>,
) -> Result<()> {
    if pending.contains(&layout::page(page))? { pending.put(layout::picture(page, usage), bytes) } else { Ok(()) }
}

/// Deletes hostname reservations that have ended.
pub(super) fn delete_expired_reservations(pending: &mut PendingChanges<'_>, now: Timestamp) -> Result<()> {
    let mut expired = Vec::new();
    for (key, head) in pending.scan(layout::prefix_range(layout::RESERVED_HOSTNAMES), usize::MAX)? {
        if expired.len() < MAX_EXPIRED_PER_OP
            && pending.get::<ReservedHostname>(&key)?.is_some_and(|reservation| reservation.until <= now)
        {
            expired.push((key, head));
        }
    }
    expired.into_iter().try_for_each(|(key, head)| pending.remove(key, &head))
}

fn delete_index_entries(pending: &mut PendingChanges<'_>, id: PageId) -> Result<()> {
    let Some((_, old)) = pending.document::<Page>(&layout::page(id))? else { return Ok(()) };
    for name in [Some(layout::slug(&old.slug)), old.custom_domain.as_deref().map(layout::custom_host)] {
        if let Some(key) = name
            && pending.get::<PageId>(&key)? == Some(id)
        {
            pending.delete(key)?;
        }
    }
    pending.delete(layout::page_of(old.account, id))
}
