//! Notifications: [`consumers`] of the journal decide who is notified, [`render`] writes the messages, [`deliver`] sends
//! them. Nothing here changes a monitor's state. Begin with [`consumers::consume_next`] and [`deliver::Deliverer`].

pub mod consumers;
pub mod deliver;
pub mod render;
