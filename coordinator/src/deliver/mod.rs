//! What goes out of the door, and the proof of who sent it. Nothing is sent yet; the API's description tells of the
//! signatures by these same types.

pub mod sign;
