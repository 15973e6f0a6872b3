//! Domain rules of Parallax: no IO, no clock, no randomness.
//!
//! A customer creates a [`monitor`], which says what to [`check`]. Agents in several regions and networks run the
//! check; the rules see each of them as a vantage ([`place`]) that delivers [`observation`]s. One state machine for
//! each monitor ([`machine`]) takes the observations, has every failure confirmed from a second network, and emits
//! events ([`event`]). Time and randomness are always arguments, so every rule can be tested as a scenario and
//! replayed.

pub mod account;
pub mod assign;
pub mod block;
pub mod board;
pub mod check;
pub mod confirm;
pub mod delivery;
pub mod deploy;
pub mod destination;
pub mod downtime;
pub mod event;
pub mod flapping;
pub mod given;
pub mod headline;
pub mod heartbeat;
pub mod id;
pub mod incident;
pub mod key;
mod late;
pub mod latency;
pub mod link;
pub mod machine;
pub mod member;
pub mod monitor;
pub mod names;
pub mod notice;
pub mod observation;
pub mod outage;
pub mod page;
pub mod place;
pub mod plan;
pub mod quarantine;
pub mod quota;
mod rare;
pub mod recurrence;
pub mod refusal;
pub mod remind;
pub mod rollup;
mod seen;
pub mod slowness;
pub mod subscriber;
pub mod telling;
pub mod text;
pub mod time;
pub mod tongue;
pub mod uptime;
pub mod verdict;
pub mod watch;
pub mod window;
