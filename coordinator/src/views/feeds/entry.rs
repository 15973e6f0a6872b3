//! Content of a feed entry: all updates of an incident or window as HTML, newest first.

use askama::Template;
use parallax_core::board::Notice;

use super::{Site, Unwritable, share_of, xml};
use crate::views::incident::Card;
use crate::views::print;
use crate::views::tongue::{Voice, Words, fill};

/// Size in bytes of an entry's updates in a feed of normal length; the newest update is always included.
const TOLD: usize = 64 * 1024;

#[derive(Debug, Clone, Template)]
#[template(path = "feeds/entry.html")]
struct Entry {
    t: &'static Words,
    card: Card,
    /// URL of the updates that don't fit.
    link: String,
}

impl Entry {
    fn affected(&self) -> String {
        fill(self.t.affected, &[&self.card.monitors])
    }

    fn earlier(&self) -> String {
        fill(self.t.more_updates, &[&self.card.more.to_string()])
    }
}

/// Renders the content of one of `count` entries, with absolute links.
pub(super) fn content(site: Site<'_>, notice: &Notice, count: usize) -> Result<String, Unwritable> {
    let mut shown = notice.clone();
    let mut room = share_of(TOLD, count);
    let mut kept = 0;
    for update in notice.incident.updates.iter().rev() {
        if update.body.len() > room && kept > 0 {
            break;
        }
        room = room.saturating_sub(update.body.len());
        kept += 1;
    }
    let more = notice.incident.updates.len() - kept;
    shown.incident.updates.drain(..more);
    // As of its start, so that an entry without news stays the same.
    let voice = Voice::of(site.page);
    let mut card = Card::of(&shown, site.address, voice, notice.incident.started_at, false);
    card.more = more + notice.more;
    // The state of a window is included only once it is stored, which changes the entry anyway.
    card.course = card.course.filter(|_| notice.incident.begun);
    let printed = print(&Entry { t: voice.words, card, link: site.incident(&notice.incident) })?;
    Ok(xml(&String::from_utf8_lossy(&printed)))
}
