//! What only the engine on disk must do: survive kills, damage and restarts.
