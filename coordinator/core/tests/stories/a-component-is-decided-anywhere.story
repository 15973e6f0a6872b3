# What regions do not judge for themselves is decided by a third network wherever it is.
monitor component every 60s
place fra1 europe A
place portal europe B
place nyc1 north-america C

00:00 everybody is up
01:00 fra1 fails vendor major outage
  -> asks portal to confirm
01:00.1 portal passes
  -> asks nyc1 to confirm
01:00.2 nyc1 fails vendor major outage
  -> round europe failed
