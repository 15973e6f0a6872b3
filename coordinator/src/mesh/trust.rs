//! Whom the mesh trusts, and with what it signs.

use std::sync::Arc;

use parallax_certs::Error;
use parallax_certs::authority::{Authority, Roots};
use parallax_certs::credentials::Credentials;
use parallax_certs::rotation::Authorities;

/// The authority that signs, and the one that is trusted beside it while one is exchanged for the other.
#[derive(Debug, Clone)]
pub struct Trust {
    /// Signs agents' certificates, and the coordinator's own.
    pub signing: Arc<Authority>,
    /// Signs a certificate of the coordinator for those who know no other authority.
    pub other: Option<Arc<Authority>>,
}

impl Trust {
    /// Trust in one authority alone.
    pub fn in_one(authority: Authority) -> Self {
        Self { signing: Arc::new(authority), other: None }
    }

    /// Whose certificates are accepted, and what agents are told to accept.
    pub(super) fn roots(&self) -> Result<Roots, Error> {
        Roots::new(self.all().map(|authority| authority.certificate().clone()).collect())
    }

    /// The coordinator's certificates, first the one for whoever names no authority.
    pub(super) fn credentials(&self) -> Result<Vec<Credentials>, Error> {
        self.all().map(Authority::issue_coordinator).collect()
    }

    /// The authorities in DER, as agents are told them.
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
