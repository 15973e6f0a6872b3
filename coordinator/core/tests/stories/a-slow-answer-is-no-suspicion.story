# A check is pending for three seconds, then passes. Confirmation and sweep in the meantime do not count.
monitor http every 60s
place fra1 europe A
place fra2 europe B
place nyc1 north-america C

00:00 everybody is up
01:03 fra1 waits
  -> asks fra2 to confirm
  -> asks nyc1 to sweep
01:03.1 fra2 fails refused
  -> nothing
01:03.2 nyc1 fails refused
  -> asks fra2 to confirm
01:03.3 fra2 fails refused
  -> nothing                    # the outcome of the sweep is held
01:04 fra1 passes 4000ms
  -> sweep round north-america failed
  -> round europe passed
  -> asks nobody
02:00 nyc1 fails refused
02:00.1 fra1 fails refused
  -> round north-america failed
02:00.2 the asked pass
02:05 time passes
  -> asks nyc1 for a second round
02:05.1 nyc1 passes
  -> second round north-america passed
