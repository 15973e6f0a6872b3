# The sweep started early and has its outcome; it counts at the moment the pending check fails.
monitor http every 60s
place fra1 europe A
place fra2 europe B
place nyc1 north-america C
place nyc2 north-america D

00:00 everybody is up
01:03 fra1 waits
  -> asks fra2 to confirm
  -> asks nyc2 to sweep
01:03.2 nyc2 fails refused
  -> asks nyc1 to confirm
01:03.3 nyc1 fails refused
  -> nothing
01:03.4 fra2 fails timeout
  -> nothing
01:05 time passes
  -> asks fra2 for a second round
  -> asks fra1 to confirm
01:10 fra1 fails timeout
  -> round europe failed
  -> sweep round north-america failed
  -> asks nyc2 for a second round
01:10.1 nyc2 fails refused
  -> asks nyc1 to confirm
01:10.2 nyc1 fails refused
  -> second round north-america failed
  -> DOWN went-down since 01:00, because timed out connecting
