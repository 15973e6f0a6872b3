# The last vantage of the pinned region is revoked: unknown, never judged from elsewhere.
monitor http every 60s pinned asia
place sin1 asia A
place sin2 asia B
place fra1 europe B

00:00 everybody is up
01:00 sin2 is revoked
  -> nothing
01:10 sin1 is revoked
  -> UNKNOWN since 01:10
02:00 fra1 passes 80ms
  -> nothing
