# The recovery sweep runs once for each outage, and not within ten minutes of the last recovery.
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
02:00 fra1 passes 50ms
  -> asks nyc1 to sweep
  -> asks sin1 to sweep
  -> scope north-america+asia
02:00.1 the asked fail refused
02:10 nyc1 passes 50ms           # second region to recover, after the sweep
  -> round north-america passed
  -> asks nobody
  -> scope asia
02:20 sin1 passes 50ms
  -> UP recovered since 02:20
03:00 fra1 fails refused
03:00.1 the asked fail refused
03:00.2 the asked fail refused
03:00.3 the asked fail refused
03:00.4 the asked fail refused
03:05 time passes
03:05.1 the asked fail refused
03:05.2 the asked fail refused
  -> DOWN went-down since 03:00
03:05.3 the asked fail refused
04:00 fra1 passes 50ms           # within ten minutes of the last recovery
  -> round europe passed
  -> asks nobody
  -> scope north-america+asia
