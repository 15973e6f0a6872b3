# The first region to recover triggers a check of the other down regions: recovered once no counted region is down.
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
01:05.2 the asked fail refused    # every region's newest round has failed: nothing to wait for
  -> DOWN went-down since 01:00
01:05.3 the asked fail refused
01:30 nyc1 fails refused
  -> round north-america failed
  -> asks nobody
02:00 fra1 passes 50ms
  -> round europe passed
  -> asks nyc1 to sweep
  -> asks sin1 to sweep
  -> scope north-america+asia
02:00.1 nyc1 passes 60ms
  -> sweep round north-america passed
  -> scope asia
02:00.2 sin1 passes 70ms
  -> sweep round asia passed
  -> UP recovered since 02:00, because connection refused, after 60.000s, latency 70ms, down since 01:00
