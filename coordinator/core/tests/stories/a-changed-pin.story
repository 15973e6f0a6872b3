# A monitor that is pinned to another region is checked from there at once; its old region has no status any more.
monitor http every 60s pinned europe
place fra1 europe A
place sin1 asia B

00:00 everybody is up
01:00 set pinned asia
  -> asks sin1 for a first round
  -> UNKNOWN since 01:00
01:00.1 sin1 passes 100ms
  -> UP since 01:00
02:00 fra1 fails refused
  -> nothing
