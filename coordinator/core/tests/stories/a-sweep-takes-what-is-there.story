# A region whose round is running, or began under four seconds ago, gives that one.
monitor http every 60s
place fra1 europe A
place fra2 europe B
place nyc1 north-america C
place sin1 asia D

00:00 everybody is up
00:55.9 sin1 passes 90ms
00:56.5 nyc1 passes 90ms
01:00 fra1 fails refused
01:00.1 fra2 fails refused
  -> round europe failed
  -> asks sin1 to sweep
01:00.2 sin1 fails refused
01:00.3 the asked fail refused
  -> sweep round asia failed
  -> asks nobody
