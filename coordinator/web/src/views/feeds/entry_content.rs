//! Content of a feed entry: all updates of an incident or window as HTML, newest first.

use parallax_core::page_view::IncidentView;
use parallax_i18n::page_messages::{PageLocale, PageMessages, fill};
use parallax_template::template_file;

use super::{FeedError, FeedSite, scaled_limit, xml_text};
use crate::views::incident_card::IncidentCard;
use crate::views::render;

/// Size in bytes of an entry's updates in a feed of normal length; the newest update is always included.
const MAX_UPDATE_BYTES: usize = 64 * 1024;

#[template_file("feeds/entry.html")]
#[derive(Debug, Clone)]
struct Entry {
    t: &'static PageMessages,
    card: IncidentCard,
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
pub(super) fn content(site: FeedSite<'_>, incident_view: &IncidentView, count: usize) -> Result<String, FeedError> {
    let mut shortened = incident_view.clone();
    let mut bytes_left = scaled_limit(MAX_UPDATE_BYTES, count);
    let mut update_count = 0;
    for update in incident_view.incident.updates.iter().rev() {
        if update.body.len() > bytes_left && update_count > 0 {
            break;
        }
        bytes_left = bytes_left.saturating_sub(update.body.len());
        update_count += 1;
    }
    let omitted_count = incident_view.incident.updates.len() - update_count;
    shortened.incident.updates.drain(..omitted_count);
    // As of its start, so that an entry without updates stays the same.
    let locale = PageLocale::of(site.page);
    let mut card = IncidentCard::of(&shortened, site.url, locale, incident_view.incident.started_at, false);
    card.more = omitted_count + incident_view.omitted_updates;
    // The state of a window is included only once it is stored, which changes the entry anyway.
    card.time_change = card.time_change.filter(|_| incident_view.incident.has_begun);
    let html = render(&Entry { t: locale.messages, card, link: site.incident_url(&incident_view.incident) })?;
    Ok(xml_text(&String::from_utf8_lossy(&html)))
}
