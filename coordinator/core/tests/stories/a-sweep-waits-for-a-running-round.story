# If a round of a region is already running, the sweep uses it.
monitor http every 60s
place fra1 europe A
place fra2 europe B
place nyc1 north-america C
place nyc2 north-america D

00:00 everybody is up
01:00 fra1 fails refused
  -> asks fra2 to confirm
01:00.1 nyc1 fails refused
  -> asks nyc2 to confirm
01:00.2 fra2 fails refused
  -> round europe failed
  -> asks nobody
01:00.3 nyc2 fails refused
  -> round north-america failed
  -> asks nobody
01:05 time passes
  -> asks fra1 for a second round
  -> asks nyc2 for a second round
