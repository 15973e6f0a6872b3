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

/// Address of the form for a new passkey.
pub(super) const NEW_PASSKEY: &str = "/app/account/security/passkeys/new";
/// Address that makes the options of a new passkey.
pub(super) const PASSKEY_OPTIONS: &str = "/app/account/security/passkeys/options";
/// Address to which a passkey is sent that confirms.
pub(super) const CONFIRM_BY_PASSKEY: &str = "/confirm/passkey";
/// Address that makes its options.
pub(super) const CONFIRM_OPTIONS: &str = "/confirm/passkey/options";

/// Addresses that the screen needs, those of a passkey in its place, and the ways out of the account.
const OPEN: [&str; 9] = [
    FACTOR,
    BEGIN,
    NEW_PASSKEY,
    PASSKEY_OPTIONS,
    "/confirm",
    CONFIRM_BY_PASSKEY,
    CONFIRM_OPTIONS,
    "/sign-out",
    "/app/account/switch",
];

/// Returns the redirect to the screen that sets up a second factor, for a person who must see it first.
pub(super) fn redirect(session: &CurrentSession, path: &str, now: Timestamp) -> Option<HttpResponse> {
    (session.is_factor_overdue(now) && !OPEN.contains(&path)).then(|| see_other(FACTOR))
}
