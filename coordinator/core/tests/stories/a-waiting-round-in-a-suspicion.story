# A suspicion sweeps once: a round that becomes pending during one is confirmed early, but does not sweep again.
monitor http every 60s
place fra1 europe A
place fra2 europe B
place nyc1 north-america C
place nyc2 north-america D
place sin1 asia E

00:00 everybody is up
01:00 fra1 fails refused
01:00.1 fra2 fails refused
  -> round europe failed
  -> asks nyc1 to sweep
  -> asks sin1 to sweep
01:00.2 the asked pass
01:04.9 nyc2 waits
  -> asks nyc1 to confirm
