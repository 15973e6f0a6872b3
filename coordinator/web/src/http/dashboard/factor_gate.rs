//! Gate for persons whose account needs a second factor and whose time for it is over: they see only the screen that
//! sets one up.

use parallax_core::time::Timestamp;
use parallax_service::people::CurrentSession;

use super::see_other;
use crate::http::response::HttpResponse;

/// Address of the screen that sets up a second factor.
pub(super) const FACTOR: &str = "/app/account/security/factor";
/// Address to which that screen's first button is sent.
pub(super) const BEGIN: &str = "/app/account/security/factor/begin";

/// Addresses that the screen needs, and the ways out of the account.
const OPEN: [&str; 5] = [FACTOR, BEGIN, "/confirm", "/sign-out", "/app/account/switch"];

/// Returns the redirect to the screen that sets up a second factor, for a person who must see it first.
pub(super) fn redirect(session: &CurrentSession, path: &str, now: Timestamp) -> Option<HttpResponse> {
    (session.is_factor_overdue(now) && !OPEN.contains(&path)).then(|| see_other(FACTOR))
}
