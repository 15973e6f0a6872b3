# With two networks in total a dispute remains. A third network without a conclusive outcome does not decide it
# either, but another vantage is tried first.
monitor http every 60s
place fra1 europe A
place fra2 europe B

00:00 everybody is up
01:00 fra1 fails refused
01:00.1 fra2 passes 20ms
  -> round europe disputed
  -> asks nobody
01:30 nyc1 joins north-america C
01:31 sin1 joins asia D
02:00 fra1 fails refused
  -> asks fra2 to confirm
02:00.1 fra2 passes 20ms
  -> asks nyc1 to confirm
02:00.2 nyc1 cannot look
  -> asks sin1 to confirm
02:12.2 time passes
  -> round europe disputed
  -> asks nobody
