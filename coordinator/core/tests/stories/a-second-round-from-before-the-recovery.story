# Both outcomes of a second round began before the recovery. They belong to the previous outage: they do not start a
# new one, and the region is checked again at once.
monitor http every 60s
place fra1 europe A
place fra2 europe B
place nyc1 north-america C
place nyc2 north-america D

00:00 everybody is up
01:00 fra1 fails refused
01:00.1 fra2 fails refused
01:00.2 the asked fail refused
01:00.3 the asked fail refused
01:05 time passes
  -> asks fra2 for a second round
  -> asks nyc1 for a second round
01:05.1 fra2 fails refused
  -> asks fra1 to confirm
01:05.2 fra1 fails refused
  -> second round europe failed
  -> DOWN went-down since 01:00
01:08 nyc1 waits
  -> asks nyc2 to confirm
01:10 fra2 passes 50ms
  -> asks fra1 to confirm
01:10.1 fra1 passes 50ms
  -> round europe passed
  -> UP recovered since 01:10, down since 01:00
01:15 nyc1 fails timeout
  -> nothing
01:18 nyc2 fails timeout
  -> second round north-america failed
  -> asks nyc1 to sweep
01:18.1 nyc1 passes 60ms
  -> sweep round north-america passed
