//! Trust of the mesh: the accepted authorities and the one that signs.

use std::sync::Arc;

use parallax_certs::Error;
use parallax_certs::authority::{Authority, Roots};
use parallax_certs::credentials::Credentials;
use parallax_certs::rotation::Authorities;

/// The signing authority, and the other trusted one during a rotation.
#[derive(Debug, Clone)]
pub struct Trust {
    /// Signs agents' certificates and the coordinator's own.
    pub signing: Arc<Authority>,
    /// Signs a coordinator certificate for agents that know no other authority.
    pub other: Option<Arc<Authority>>,
}

impl Trust {
    /// Trusts one authority only.
    pub fn in_one(authority: Authority) -> Self {
        Self { signing: Arc::new(authority), other: None }
    }

    /// Returns the authorities whose certificates are accepted, by the coordinator and by agents.
    pub(super) fn roots(&self) -> Result<Roots, Error> {
        Roots::new(self.all().map(|authority| authority.certificate().clone()).collect())
    }

    /// Returns the coordinator's certificates; the first is for clients that name no authority.
    pub(super) fn credentials(&self) -> Result<Vec<Credentials>, Error> {
        self.all().map(Authority::issue_coordinator).collect()
    }

    /// Returns the authorities in DER, as sent to agents.
    pub(super) fn authorities_der(&self) -> Vec<Vec<u8>> {
        self.all().map(|authority| authority.certificate().to_vec()).collect()
    }

    fn all(&self) -> impl Iterator<Item = &Authority> {
        [Some(&self.signing), self.other.as_ref()].into_iter().flatten().map(Arc::as_ref)
    }
}

impl From<&Authorities> for Trust {
    fn from(authorities: &Authorities) -> Self {
        Self { signing: Arc::clone(authorities.signing()), other: authorities.other().cloned() }
    }
}
