//! Who may join the mesh: one private authority per installation and the two kinds of leaf it signs.
//!
//! # The trust story
//!
//! The coordinator makes an [`authority::Authority`] on its first start. It signs two kinds of leaf and no other:
//!
//! - the **coordinator's**: `serverAuth` only, one constant DNS name ([`issue::COORDINATOR_NAME`]), because agents
//!   dial addresses and judge the authority, not the address. It lives as long as its authority: the key lies beside
//!   the authority's own, so a shorter life would protect nothing, and an agent whose clock is off by days still
//!   finds the certificate valid.
//! - an **agent's**: `clientAuth` only, one URI name `spiffe://parallax/agent/<id>`, 30 days. The key is made on the
//!   agent's host and never leaves it; of the request only the key is taken, and only with proof of possession.
//!
//! A new agent gets its certificate for a [`token::Token`] that carries the SHA-256 of the authority's public key, so
//! that the agent can judge the coordinator *before* it sends the secret ([`tls::join_config`]).
//!
//! An authority is exchanged for another by a rotation ([`rotation::Authorities`]): both are trusted for a while, and
//! the coordinator shows each client a certificate of an authority that the client names in its first message.
//!
//! No session is ever resumed and nothing is sent early: a resumed TLS 1.3 session does not judge the client's
//! certificate again. Times of validity are unix seconds and always an argument; this crate reads no clock.

mod admit;
pub mod authority;
pub mod credentials;
pub mod csr;
pub mod error;
pub mod files;
mod hint;
pub mod identity;
pub mod issue;
pub mod rotation;
pub mod sealing;
pub mod secret;
pub mod tls;
pub mod token;
pub mod verify;

pub use error::Error;
