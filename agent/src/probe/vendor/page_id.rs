//! The id that some products' documents have in their addresses: where it is found, and its syntax.

use url::Url;

/// Source of a page's id.
#[derive(Debug)]
pub(in crate::probe) enum PageIdSource {
    /// The address: the path's only segment after this.
    After(&'static str),
    /// The address: the host's subdomain of the product's domain.
    Host,
    /// A document at this address.
    In(&'static str, fn(&[u8]) -> Option<String>),
}

impl PageIdSource {
    /// Returns the id, if the address itself contains it.
    pub(in crate::probe) fn in_address(&self, base: &str) -> Option<String> {
        let url = Url::parse(base).ok()?;
        let id = match self {
            Self::After(before) => url.path().strip_prefix(before)?,
            Self::Host => url.host_str()?.split_once('.').filter(|(_, rest)| rest.contains('.'))?.0,
            Self::In(..) => return None,
        };
        is_id(id).then(|| id.to_owned())
    }
}

/// Returns true if `id` can be put in an address unescaped.
pub(super) fn is_id(id: &str) -> bool {
    (1..=100).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
}
