# The third network that decides about a pinned monitor is in the monitor's region.
monitor http every 60s pinned europe
place fra1 europe A
place portal europe B
place nyc1 north-america C
place fra4 europe D

00:00 the monitor is made
  -> asks fra4 for a first round
00:00.1 fra4 passes 20ms
  -> first round europe passed
  -> UP since 00:00
01:00 fra1 fails refused
  -> asks portal to confirm
01:00.1 portal passes 20ms
  -> asks fra4 to confirm
01:00.2 fra4 fails refused
  -> round europe failed
  -> asks nobody
01:05 time passes
  -> asks fra4 for a second round
01:05.1 fra4 fails refused
  -> asks portal to confirm
01:05.2 portal passes 20ms
  -> asks fra1 to confirm
01:05.3 fra1 fails refused
  -> second round europe failed
  -> DOWN went-down since 01:00
