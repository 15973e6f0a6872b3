# A region outside uptimeRegions does not count for up and down, but it can make the monitor slow if
# latencyLocations contains it.
monitor http every 60s threshold 300 latency asia uptime europe
place fra1 europe A
place sin1 asia B

00:00 everybody is up
01:30 sin1 passes 400ms
  -> SLOW went-slow since 01:30
02:00 fra1 passes 900ms
  -> round europe passed
02:30 sin1 passes 100ms
  -> UP back-to-normal since 02:30
