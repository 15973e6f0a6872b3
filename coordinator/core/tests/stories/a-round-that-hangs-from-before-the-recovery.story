# A down region with a running round cannot be part of the sweep when another region recovers. That round began
# before the recovery and ends in a timeout; the region is checked again at once instead of at its next scheduled
# round.
monitor http every 60s
place fra1 europe A
place nyc1 north-america B
place sin1 asia C

00:00 everybody is up
01:00 fra1 fails refused
01:00.1 the asked fail refused
01:00.2 the asked fail refused
01:00.3 the asked fail refused
01:00.4 the asked fail refused
01:05 time passes
01:05.1 the asked fail refused
01:05.2 the asked fail refused
  -> DOWN went-down since 01:00
01:05.3 the asked fail refused
01:54 sin1 waits
02:00 fra1 passes 50ms
  -> round europe passed
  -> asks nyc1 to sweep
  -> scope north-america+asia
02:00.1 nyc1 passes 60ms
  -> sweep round north-america passed
  -> scope asia
02:01 sin1 fails timeout
  -> round asia failed
  -> asks sin1 to sweep
02:01.1 sin1 passes 70ms
  -> sweep round asia passed
  -> UP recovered since 02:01, because connection refused, down since 01:00
