# A registry that cannot be read is inconclusive, never "expiring": the status stays, and the last check gives the
# reason.
monitor domain every 6h
place fra1 europe A
place sin1 asia B

00:00 the monitor is made
00:01 the asked pass
  -> UP since 00:00
360:00 sin1 cannot judge registry: its answer has no expiry date
  -> round asia inconclusive
  -> asks nobody
360:01 it is up since 00:00 last failed at 360:00 with registry: its answer has no expiry date
720:00 fra1 passes
720:01 it is last ok at 720:00
