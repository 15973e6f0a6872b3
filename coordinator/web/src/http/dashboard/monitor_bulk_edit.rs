//! Form that changes many monitors: it sets the filled fields, and leaves the others as they are.

use parallax_core::id::MonitorId;
use parallax_core::monitor::edit::{MonitorEdit, THRESHOLD_MS};
use parallax_core::patch::PatchField;

use super::forms::{Form, FormRefusal};
use super::page_screen::reply_with;
use crate::http::error::HandlerResult;
use crate::views::dashboard::Frame;
use crate::views::dashboard::bulk_edit::BulkEditScreen;

/// Value of the select for monitors that are checked from every region.
const EVERY_REGION: &str = "every";
/// Prefix of the fields in errors of the service.
const SET: &str = "set.";

/// Reads the filled fields; `None` if there is none.
pub(super) fn read(form: &Form) -> Option<MonitorEdit> {
    let text = |name: &str| Some(form.text(name).trim().to_owned()).filter(|text| !text.is_empty());
    let threshold = |text: String| {
        let (from, to) = (THRESHOLD_MS.start(), THRESHOLD_MS.end());
        let wrong = || PatchField::Invalid(format!("must be a whole number from {from} to {to}"));
        text.parse().map_or_else(|_| wrong(), PatchField::Value)
    };
    let pinned = |region: String| if region == EVERY_REGION { PatchField::Null } else { PatchField::Value(region) };
    let latency_regions: Vec<String> = form.all("latencyLocations").map(str::to_owned).collect();
    let edit = MonitorEdit {
        group: text("groupName").map_or(PatchField::Absent, PatchField::Value),
        slow_threshold_ms: text("slowThresholdMs").map_or(PatchField::Absent, threshold),
        latency_regions: if latency_regions.is_empty() {
            PatchField::Absent
        } else {
            PatchField::Value(latency_regions)
        },
        pinned_region: text("pinnedRegion").map_or(PatchField::Absent, pinned),
        ..MonitorEdit::default()
    };
    let is_empty = [
        edit.group == PatchField::Absent,
        edit.slow_threshold_ms == PatchField::Absent,
        edit.latency_regions == PatchField::Absent,
        edit.pinned_region == PatchField::Absent,
    ];
    (!is_empty.iter().all(|is_empty| *is_empty)).then_some(edit)
}

/// Replies with the form for those monitors: empty, or with the reasons for which it was refused.
pub(super) fn draw(
    frame: Frame,
    monitors: Vec<(MonitorId, String)>,
    form: &Form,
    refusal: Option<FormRefusal>,
) -> HandlerResult {
    let without_prefix = |mut refusal: FormRefusal| {
        for fault in &mut refusal.faults {
            if let Some(field) = fault.field.strip_prefix(SET) {
                fault.field = field.to_owned();
            }
        }
        refusal
    };
    let (view, status) = form.drawn(&frame.person.form_token, refusal.map(without_prefix));
    reply_with(&BulkEditScreen::new(frame, monitors, view), status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_filled_fields_are_set() {
        assert!(read(&Form::of([("groupName", " "), ("slowThresholdMs", ""), ("latencyLocations", "")])).is_none());
        let edit = read(&Form::of([("slowThresholdMs", "400"), ("pinnedRegion", "")])).unwrap();
        assert_eq!((edit.slow_threshold_ms, edit.pinned_region), (PatchField::Value(400), PatchField::Absent));
        assert_eq!((edit.group, edit.latency_regions), (PatchField::Absent, PatchField::Absent));
        let edit = read(&Form::of([("pinnedRegion", "every"), ("latencyLocations", "asia")])).unwrap();
        assert_eq!(edit.pinned_region, PatchField::Null);
        assert_eq!(edit.latency_regions, PatchField::Value(vec!["asia".to_owned()]));
        let edit = read(&Form::of([("slowThresholdMs", "fast")])).unwrap();
        assert!(matches!(edit.slow_threshold_ms, PatchField::Invalid(_)));
    }
}
