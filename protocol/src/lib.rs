//! Wire protocol of the mesh between agents and the coordinator, byte for byte.
//!
//! A connection carries three kinds of streams, each a sequence of [`frame`]s:
//!
//! - one bidirectional **control** stream, opened by the agent: [`message::ToCoordinator`] one way,
//!   [`message::ToAgent`] the other. The agent's first frame is `Hello`, the coordinator's is `Welcome`.
//! - one unidirectional **results** stream, opened by the agent: [`batch::ResultBatch`] frames. They are
//!   acknowledged on the control stream.
//! - one short bidirectional stream for each **check-now**, opened by the coordinator: one
//!   [`message::WireCheckNow`], answered by one or two [`message::WireCheckNowResponse`]s.
//!
//! A join connection (its own ALPN name) has a single bidirectional stream: one [`join::JoinRequest`], one
//! [`join::JoinResponse`].
//!
//! # Compatibility
//!
//! A frame is a length and a postcard value. postcard encodes by position, so within one protocol version no
//! field is added, removed or moved; enums only grow at their end, and only with variants that the other side
//! never receives unless it declared support for them. Every other change needs a new ALPN name
//! ([`version`]). Version 2 adds the frames [`message::ToAgent::ExternalAddress`] and
//! [`message::ToAgent::ScheduleByAccount`]; the latter is sent in place of `Schedule`. Both versions are
//! supported. The exact bytes of every variant are frozen in `tests/golden`.
//!
//! Unless documented otherwise, values named `_ms` are milliseconds since the Unix epoch by the coordinator's
//! clock, or durations in milliseconds.

pub mod assignment;
pub mod batch;
pub mod check;
pub mod close;
pub mod error;
pub mod fair_slots;
pub mod frame;
pub mod id;
pub mod join;
pub mod message;
pub mod result;
mod rice;
pub mod text;
pub mod version;

pub use error::ProtocolError;
