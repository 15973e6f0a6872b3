//! Domain rules of Parallax: no IO, no clock, no randomness.
//!
//! A customer creates a [`monitor`], which says what to [`check`]. Agents in several regions and networks run the
//! check; the rules see each of them as a vantage ([`vantage`]) that delivers [`observation`]s. One state machine for
//! each monitor ([`machine`]) takes the observations, has every failure confirmed from a second network, and emits
//! events ([`event`]). Time and randomness are always arguments, so every rule can be tested as a scenario and
//! replayed.

pub mod account;
pub mod acknowledgement;
pub mod alert_settings;
pub mod assign;
pub mod audit;
pub mod block;
mod boxed_if_set;
pub mod check;
pub mod company_sign_in;
mod compat;
pub mod condition;
pub mod confirmation;
pub mod csv;
pub mod delivery;
pub mod deploy;
pub mod destination;
pub mod dns_faults;
pub mod downtime;
pub mod effective;
pub mod event;
pub mod evidence_link;
pub mod explanation;
pub mod flapping;
pub mod headline;
pub mod heartbeat;
pub mod id;
pub mod incident;
pub mod key;
pub mod latency;
pub mod link_token;
pub mod locale;
pub mod login_delay;
pub mod login_session;
pub mod machine;
pub mod maintenance_window;
pub mod member;
pub mod monitor;
pub mod observation;
pub mod one_time_link;
pub mod operator_alert;
pub mod outage;
pub mod outage_evidence;
pub mod page;
pub mod page_view;
pub mod passkey;
pub mod patch;
pub mod person;
pub mod plan;
pub mod quarantine;
pub mod rate_limit;
pub mod recurrence;
pub mod reminder;
mod replay_window;
pub mod role;
pub mod rollup;
pub mod second_factor;
pub mod slowness;
pub mod subscriber;
pub mod text;
pub mod time;
pub mod undo;
pub mod uptime;
pub mod validation;
pub mod vantage;
pub mod verdict;
