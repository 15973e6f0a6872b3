//! Sealing: records that hold customers' secrets are encrypted with the operator's key before the engine stores them.
//!
//! | sealed | because it may hold |
//! |---|---|
//! | `dm` monitors | headers, bodies, addresses with credentials, ping tokens |
//! | `dt` destinations | webhook secrets, bot tokens, chat addresses |
//! | `du` subscribers | mail addresses, webhook secrets and addresses |
//! | `vd` deliveries | the same of their recipients, and whole messages with links that need no sign-in |
//! | `dr` stored responses | secrets that a response showed once, and records that an undo brings back |
//! | `pi` pings | bodies that jobs sent |
//! | `de` persons | the secret of their authenticator app; passkeys are public keys |
//! | `dy` company sign-ins | the secret of this service at the provider |
//! | `al` audit log | names of persons, mail addresses, and values of settings |
//!
//! Everything else stays in plain text: measurements (`ms`, `or`, `bl`, `r*`, `f*`, `tc`), events (`ev`) and the
//! content of pages; accounts, keys, invitations, and persons' sessions and one-time links, of whose secrets only hashes
//! are stored, as of page passwords; and indexes, which hold ids and email addresses of persons.
//!
//! A plain record stays readable and is sealed when it is next written; [`compact`](super::compact) seals all. The
//! record `!k` lists the keys that have sealed anything, so that a store is not opened without one of them.

/// Key of the record with the ids of all encryption keys that have sealed anything.
pub(super) const KEYS_KEY: &[u8] = b"!k";

/// Prefixes of records that are sealed.
const SEALED: [&[u8]; 9] = [b"dm", b"dt", b"du", b"vd", b"dr", b"pi", b"de", b"dy", b"al"];

/// Returns true for records that are sealed once there is an encryption key.
pub(super) fn holds_secrets(key: &[u8]) -> bool {
    SEALED.iter().any(|prefix| key.starts_with(prefix))
}
