// Keeps an embedded page up to date while it is visible.
renewal.tick();
renewal.begin();
