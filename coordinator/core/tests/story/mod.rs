//! Players of stories: a monitor, its vantages, and the machine that receives their results.

pub(crate) mod mesh;
pub(crate) mod script;
pub(crate) mod stage;
pub(crate) mod text;
pub(crate) mod world;
