# A region with one network is confirmed by another network elsewhere.
monitor http every 60s
place fra1 europe A
place nyc1 north-america A
place sin1 asia B

00:00 everybody is up
01:00 fra1 fails refused
  -> asks sin1 to confirm
01:00.2 sin1 passes 200ms
  -> round europe disputed
