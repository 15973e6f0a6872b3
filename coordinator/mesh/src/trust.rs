//! Trust of the mesh: the accepted authorities and the one that signs.

use std::sync::Arc;

use parallax_certs::CertsError;
use parallax_certs::authority::MeshAuthority;
use parallax_certs::credentials::Credentials;
use parallax_certs::rotation::AuthorityStore;
use parallax_certs::trust_roots::TrustRoots;

/// The signing authority, and the other trusted one during a rotation.
#[derive(Debug, Clone)]
pub struct Trust {
    /// Signs agents' certificates and the coordinator's own.
    pub signing: Arc<MeshAuthority>,
    /// Signs a coordinator certificate for agents that know no other authority.
    pub other_authority: Option<Arc<MeshAuthority>>,
}

impl Trust {
    /// Trusts one authority only.
    pub fn single(authority: MeshAuthority) -> Self {
        Self { signing: Arc::new(authority), other_authority: None }
    }

    /// Returns the authorities whose certificates are accepted, by the coordinator and by agents.
    pub(super) fn roots(&self) -> Result<TrustRoots, CertsError> {
        TrustRoots::new(self.all().map(|authority| authority.certificate().clone()).collect())
    }

    /// Returns the coordinator's certificates; the first is for clients that name no authority.
    pub(super) fn credentials(&self) -> Result<Vec<Credentials>, CertsError> {
        self.all().map(MeshAuthority::issue_coordinator).collect()
    }

    /// Returns the authorities in DER, as sent to agents.
    pub(super) fn authorities_der(&self) -> Vec<Vec<u8>> {
        self.all().map(|authority| authority.certificate().to_vec()).collect()
    }

    fn all(&self) -> impl Iterator<Item = &MeshAuthority> {
        [Some(&self.signing), self.other_authority.as_ref()].into_iter().flatten().map(Arc::as_ref)
    }
}

impl From<&AuthorityStore> for Trust {
    fn from(authorities: &AuthorityStore) -> Self {
        Self { signing: Arc::clone(authorities.signing()), other_authority: authorities.other_trusted().cloned() }
    }
}
