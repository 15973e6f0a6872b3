//! A try to sign in, as it counts until it is complete.

/// A counted try.
#[derive(Clone)]
pub(super) struct CountedTry {
    /// Hash of the email address, or of it with the kind of try.
    pub(super) email: [u8; 32],
    /// Address block of the browser, if known.
    pub(super) network: Option<u128>,
}
