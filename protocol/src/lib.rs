//! What crosses the mesh between agents and the coordinator, byte for byte.
//!
//! A connection carries three kinds of streams, each a run of [`frame`]s:
//!
//! - one bidirectional **control** stream, opened by the agent: [`message::ToCoordinator`] one way,
//!   [`message::ToAgent`] the other. The agent's first frame is `Hello`, the coordinator's is `Welcome`.
//! - one unidirectional **results** stream, opened by the agent: [`batch::ResultBatch`] frames. They are
//!   acknowledged on the control stream.
//! - one short bidirectional stream for each **check-now**, opened by the coordinator: one
//!   [`message::CheckNow`], answered by one or two [`message::CheckAnswer`]s.
//!
//! A join connection (its own ALPN name) has a single bidirectional stream: one [`join::JoinRequest`], one
//! [`join::JoinAnswer`].
//!
//! # The promise
//!
//! A frame is a length and a postcard value. postcard writes by position, so within one protocol version
//! no field is added, removed or moved; enums only grow at their end, and only with variants that the other
//! side never receives unless it said it knows them. Everything else is a new ALPN name ([`version`]): version 2 adds
//! [`message::ToAgent::ScheduleByAccount`] and sends it in place of `Schedule`. The
//! exact bytes of every variant are kept in `tests/golden`.
//!
//! All times named `_ms` without another word are milliseconds since the Unix epoch by the coordinator's
//! clock, or plain durations in milliseconds, as their documentation says.

pub mod assignment;
pub mod batch;
mod bits;
pub mod check;
pub mod close;
pub mod error;
pub mod frame;
pub mod id;
pub mod join;
pub mod message;
pub mod result;
pub mod slots;
pub mod text;
pub mod version;

pub use error::ProtocolError;
