//! The warning about a saved monitor whose checks can't be judged.

use parallax_core::check::{Check, unpublished_expiry};
use parallax_service::monitors::MonitorWithState;

/// Returns a warning for a monitor that can't be judged, according to its newest check or to what its registry
/// publishes.
pub(super) fn unjudged_warning(current: &MonitorWithState) -> Option<String> {
    let newest = current.view.last_check.as_ref().filter(|_| current.view.unjudged);
    if let Some(reason) = newest.and_then(|check| check.error.as_ref()) {
        return Some(format!("the newest check could not be judged: {reason}"));
    }
    let Check::Domain(domain) = &current.monitor.check else { return None };
    // An expiry that was read before outranks the list.
    let top = unpublished_expiry::domain_without_expiry(&domain.host).filter(|_| current.view.expires_at.is_none())?;
    Some(format!(
        "the registry of .{top} publishes no expiry dates, so this monitor can't warn before the domain expires"
    ))
}
