//! One monitor's life: observations, opinions, beats and deadlines go in; questions, readings and changes come out.

mod view;

pub use view::{LastCheck, View};

use serde::{Deserialize, Serialize};

/// Everything a machine must remember over a restart.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {}
