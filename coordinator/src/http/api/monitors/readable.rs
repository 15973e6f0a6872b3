//! The warning beside a saved monitor whose checks can't be judged, or never will be.

use parallax_core::check::{Check, expiry};

use crate::service::monitors::Shown;

/// Words for an owner who saves a monitor that nobody can judge: by its newest check, or by what its registry publishes.
pub(super) fn warning(shown: &Shown) -> Option<String> {
    let newest = shown.view.last_check.as_ref().filter(|_| shown.view.unjudged);
    if let Some(reason) = newest.and_then(|check| check.error.as_ref()) {
        return Some(format!("the newest check could not be judged: {reason}"));
    }
    let Check::Domain(domain) = &shown.monitor.check else { return None };
    // What was read before is known better than the list has it.
    let top = expiry::unpublished(&domain.host).filter(|_| shown.view.expires_at.is_none())?;
    Some(format!(
        "the registry of .{top} publishes no expiry dates, so this monitor can't warn before the domain ends"
    ))
}
