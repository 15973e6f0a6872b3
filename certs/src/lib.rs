//! Membership of the mesh: one private authority per installation and the two kinds of leaf certificates it
//! signs.
//!
//! # Trust model
//!
//! The coordinator creates an [`authority::MeshAuthority`] on its first start. It signs two kinds of leaf and no
//! other:
//!
//! - the **coordinator's**: `serverAuth` only, one constant DNS name ([`certificate_fields::COORDINATOR_NAME`]),
//!   because agents dial addresses and verify the authority, not the address. It is valid as long as its authority:
//!   its key is stored in the same folder as the authority's, so a shorter validity would protect nothing,
//!   and an agent whose clock is off by days still finds the certificate valid.
//! - an **agent's**: `clientAuth` only, one URI name `spiffe://parallax/agent/<id>`, 30 days. The key is
//!   created on the agent's host and never leaves it; only the key is taken from the request, and only with
//!   proof of possession.
//!
//! A new agent gets its certificate for a [`token::JoinToken`] that contains the SHA-256 of the authority's
//! public key, so that the agent can verify the coordinator *before* it sends the secret
//! ([`tls::join_config`]).
//!
//! A rotation replaces the authority ([`rotation::AuthorityStore`]): both authorities are trusted for a while,
//! and the coordinator presents each client a certificate of an authority that the client names in its first
//! message.
//!
//! Session resumption and early data are disabled: a resumed TLS 1.3 session does not verify the client's
//! certificate again. Validity times are unix seconds and always an argument; this crate reads no clock.

pub mod authority;
mod authority_hint;
pub mod certificate_fields;
mod client_verifier;
pub mod credentials;
pub mod csr;
pub mod error;
pub mod files;
pub mod identity;
pub mod issue;
pub mod mesh_secret;
pub mod random;
pub mod rotation;
pub mod sealing;
pub mod server_verifier;
pub mod tls;
pub mod token;
pub mod trust_roots;

pub use error::CertsError;
