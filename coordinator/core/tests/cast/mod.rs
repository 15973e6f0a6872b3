//! The cast of every story: a monitor, its places, and the machine that is told what they see.

pub(crate) mod mesh;
pub(crate) mod script;
pub(crate) mod stage;
pub(crate) mod text;
pub(crate) mod world;
