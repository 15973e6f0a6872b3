# Asia does not count for up and down, but it counts for slowness: its readings are valid for three intervals, down
# or not.
monitor http every 60s threshold 300 latency asia uptime europe
place fra1 europe A
place sin1 asia B
place sin2 asia C

00:00 everybody is up
01:00 sin1 passes 400ms
  -> SLOW went-slow since 01:00
02:00 sin2 fails refused
02:00.1 sin1 fails refused
  -> round asia failed
03:00 sin1 fails refused
03:00.1 sin2 fails refused
  -> round asia failed
03:30 fra1 passes 50ms
  -> round europe passed
04:00 time passes
  -> UP back-to-normal since 04:00
