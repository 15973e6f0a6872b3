// Keeps an embedded page up to date while it is visible.
liveUpdates.updateTimes();
liveUpdates.start();
