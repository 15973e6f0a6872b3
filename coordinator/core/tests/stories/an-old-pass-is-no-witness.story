# A disconnected region was last checked before the outage: no region has seen the target up since, so it is down
# everywhere. Once that region is connected and passes, it is a witness.
monitor http every 15s
place fra1 europe A
place fra2 europe B
place nyc1 north-america C
place sin1 asia D

00:00 everybody is up
00:59.9 sin1 passes 90ms
00:59.95 sin1 disconnects
01:00 fra1 fails refused
01:00.1 fra2 fails refused
  -> round europe failed
  -> asks nyc1 to sweep
01:00.2 nyc1 fails refused
  -> asks fra1 to confirm
01:00.3 fra1 fails refused
  -> sweep round north-america failed
01:05 time passes
  -> asks fra1 for a second round
  -> asks nyc1 for a second round
01:05.1 nyc1 fails refused
  -> asks fra2 to confirm
01:05.2 fra2 fails refused
  -> second round north-america failed
01:05.3 fra1 fails refused
01:05.4 fra2 fails refused
  -> second round europe failed
  -> DOWN went-down since 01:00, 4 rounds as evidence
01:20 sin1 connects
01:21 sin1 passes 90ms
  -> round asia passed
  -> scope europe+north-america
