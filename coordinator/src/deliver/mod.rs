//! What goes out of the door: the body of an alert, and the proof of who sent it. Nothing is sent yet; the API's
//! description tells of both by these same types.

pub mod payload;
pub mod sign;
