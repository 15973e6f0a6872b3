# A single failed round, confirmed or not, is no outage: the second round passes.
monitor http every 60s
place fra1 europe A
place fra2 europe B
place nyc1 north-america C
place sin1 asia D

00:00 everybody is up
01:00 fra1 fails reset
01:00.1 fra2 fails reset
  -> round europe failed
  -> asks nyc1 to sweep
  -> asks sin1 to sweep
01:00.2 the asked pass
  -> sweep round north-america passed
  -> sweep round asia passed
01:05 time passes
  -> asks fra1 for a second round
01:05.1 fra1 passes 40ms
  -> second round europe passed
  -> asks nobody
02:00 fra2 passes 40ms
  -> round europe passed
02:01 it is up since 00:00
