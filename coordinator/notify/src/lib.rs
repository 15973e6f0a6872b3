//! Notifications: consumers of the journal decide who is notified, `render` writes the messages, `deliver` sends them.

pub mod consumers;
pub mod deliver;
pub mod render;
