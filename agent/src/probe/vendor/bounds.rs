//! Size limits of cached vendor pages: their authors decide how many texts they have, and how long they are.

use std::{collections::BTreeMap, mem::size_of};

use super::{PageComponent, PageIncident, VendorPage};

/// Maximum length of a cached text in bytes: longer than any real name, and no shorter than a monitor may
/// request in ASCII.
const MAX_TEXT: usize = 200;
/// Maximum memory in bytes of all of a page's documents together.
pub(in crate::probe) const MAX_PAGE: usize = 2 << 20;
/// Memory of one entry of a map or list besides its texts.
const ENTRY_BYTES: usize = 48;

/// Truncates a name as it is cached: whitespace is normalised first. A requested name is truncated in the
/// same way, so equal names stay equal. Two long names with the same beginning can't be distinguished.
pub(super) fn truncate_name(name: &str) -> String {
    if name.len() <= MAX_TEXT {
        return name.to_owned();
    }
    let mut text = String::with_capacity(MAX_TEXT);
    for word in name.split_whitespace() {
        if !text.is_empty() {
            text.push(' ');
        }
        // Truncates an endless word to the limit.
        text.push_str(truncated(word));
        if text.len() > MAX_TEXT {
            break;
        }
    }
    truncated(&text).to_owned()
}

fn truncated(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_TEXT)]
}

impl VendorPage {
    /// Truncates every text of the page.
    pub(in crate::probe) fn truncate(&mut self) {
        let cut = |text: &mut String| {
            if text.len() > MAX_TEXT {
                *text = truncate_name(text);
            }
        };
        let labels = self.states_by_id.values_mut().chain(&mut self.overall);
        labels.for_each(|label| cut(&mut label.text));
        for PageComponent { id, name, group, label } in &mut self.components {
            [id, name, &mut label.text].into_iter().chain(group).for_each(cut);
        }
        for PageIncident { title, affected: touches } in &mut self.incidents {
            std::iter::once(title).chain(touches.iter_mut().flatten()).for_each(cut);
        }
        self.unreadable_part.iter_mut().for_each(cut);
        self.groups_by_id.values_mut().for_each(cut);
        // Ids refer to the same item in several documents, so they are truncated alike.
        let keyed = |key: &String| key.len() > MAX_TEXT;
        if self.states_by_id.keys().chain(self.groups_by_id.keys()).any(keyed) {
            self.states_by_id =
                std::mem::take(&mut self.states_by_id).into_iter().map(|(id, it)| (truncate_name(&id), it)).collect();
            self.groups_by_id =
                std::mem::take(&mut self.groups_by_id).into_iter().map(|(id, it)| (truncate_name(&id), it)).collect();
        }
    }

    /// Drops the data that only served to combine documents.
    pub(in crate::probe) fn finish(&mut self) {
        (self.states_by_id, self.groups_by_id) = (BTreeMap::new(), BTreeMap::new());
        self.components.iter_mut().for_each(|component| component.id = String::new());
        self.components.shrink_to_fit();
        self.incidents.shrink_to_fit();
    }

    /// Returns the approximate memory in bytes.
    pub(in crate::probe) fn size(&self) -> usize {
        let components = self.components.iter().map(|PageComponent { id, name, group, label }| {
            let group = group.as_ref().map_or(0, String::capacity);
            size_of::<PageComponent>() + id.capacity() + name.capacity() + group + label.text.capacity()
        });
        let incidents = self.incidents.iter().map(|PageIncident { title, affected: touches }| {
            let touched = touches.iter().flatten().map(|name| size_of::<String>() + name.capacity());
            size_of::<PageIncident>() + title.capacity() + touched.sum::<usize>()
        });
        let labels = self.states_by_id.iter().map(|(id, label)| ENTRY_BYTES + id.capacity() + label.text.capacity());
        let groups = self.groups_by_id.iter().map(|(id, group)| ENTRY_BYTES + id.capacity() + group.capacity());
        size_of::<Self>()
            + components.sum::<usize>()
            + incidents.sum::<usize>()
            + labels.sum::<usize>()
            + groups.sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{NoReading, StateLabel, statuspage};
    use super::*;
    use parallax_protocol::result::VendorState;

    fn page(names: &[&str]) -> VendorPage {
        let component = |name: &&str| PageComponent {
            name: (*name).to_owned(),
            label: StateLabel::new("up", Some(VendorState::Operational)),
            ..PageComponent::default()
        };
        VendorPage { components: names.iter().map(component).collect(), ..VendorPage::default() }
    }

    #[test]
    fn a_truncated_name_matches_its_full_name_only() {
        let long = "Störung ".repeat(400);
        let nested = format!("{long} / {long}");
        let mut page = page(&[&long, "Web"]);
        page.components.push(PageComponent { group: Some("Core  ".repeat(99)), ..page.components[0].clone() });
        page.truncate();
        assert!(page.components.iter().all(|component| component.name.len() <= MAX_TEXT));
        let spaced = long.replace(' ', "  ").to_uppercase();
        let grouped = format!("{} / {long}", "core ".repeat(99));
        for name in [&long, &spaced, &grouped] {
            assert!(page.reading(Some(name)).is_ok(), "{name}");
        }
        for name in ["Störung", &"Störung ".repeat(5), &nested.replace("Stör", "Star")] {
            assert!(matches!(page.reading(Some(name)), Err(NoReading::Missing(_))), "{name}");
        }
        assert!(page.reading(Some("web")).is_ok());
    }

    #[test]
    fn a_pages_size_is_that_after_truncation_without_ids() {
        let names = (0..50).map(|n| format!("{}{n}", "x".repeat(9_000))).collect::<Vec<_>>();
        let component =
            |name: &String| serde_json::json!({"id": name, "name": name, "status": "operational", "group_id": name});
        let document = serde_json::json!({
            "page": {"id": "x"}, "status": {"indicator": "none", "description": "y".repeat(9_000)},
            "components": names.iter().map(component).collect::<Vec<_>>(),
            "incidents": [{"name": "z".repeat(9_000), "status": "open", "components": [{"name": names[0]}]}],
        });
        let mut page = statuspage::read(document.to_string().as_bytes()).unwrap();
        page.truncate();
        page.finish();
        assert!(page.size() < 50 * 450 + 1_000, "{}", page.size());
        let reading = page.reading(None).unwrap();
        assert!(reading.vendor_text.as_str().starts_with("yyy"));
    }
}
