//! What goes out of the door, and the proof of who sent it.

pub mod mail;
pub mod sign;
