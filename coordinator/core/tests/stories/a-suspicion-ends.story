# A suspicion ends when no round of it is running and each of its regions is down or has passed. A later failure
# opens a new one.
monitor http every 60s
place fra1 europe A
place fra2 europe B
place nyc1 north-america C

00:00 everybody is up
01:00 fra1 fails refused
01:00.1 fra2 fails refused
  -> round europe failed
  -> asks nyc1 to sweep
01:00.2 nyc1 passes 90ms
01:05 time passes
01:05.1 the asked pass
  -> second round europe passed
01:30 nyc1 fails refused
01:30.1 the asked fail refused
  -> round north-america failed
  -> asks fra1 to sweep
01:30.2 fra1 fails refused        # a failure found by a sweep does not sweep again
  -> asks fra2 to confirm
01:30.3 fra2 fails refused
  -> sweep round europe failed
  -> asks nobody
