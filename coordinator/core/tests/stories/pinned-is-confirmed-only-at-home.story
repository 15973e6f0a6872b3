# A pinned monitor is checked from its region only, and confirmed only within it.
monitor http every 60s pinned europe
place fra1 europe A
place fra2 europe B
place nyc1 north-america C

00:00 the monitor is made
  -> asks fra1 for a first round
00:00.1 fra1 passes 20ms
  -> first round europe passed
  -> UP since 00:00
01:00 fra1 fails refused
  -> asks fra2 to confirm
01:00.1 fra2 is silent
  -> round europe unconfirmed
  -> asks nobody
01:30 nyc1 fails refused        # wrong region: ignored
  -> nothing
02:00 fra1 fails refused
02:00.1 fra2 fails refused
  -> round europe failed
  -> asks nobody
02:05 time passes
  -> asks fra2 for a second round
02:05.1 fra2 fails refused
02:05.2 fra1 fails refused
  -> second round europe failed
  -> DOWN went-down since 02:00
