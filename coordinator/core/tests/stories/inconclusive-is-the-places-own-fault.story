# The vantage has no route, no resolver or no descriptors: no outcome for the target, no confirmation, nothing is
# shown.
monitor http every 60s
place fra1 europe A
place fra2 europe B

00:00 everybody is up
01:00 fra1 cannot look
  -> round europe inconclusive
  -> asks nobody
01:01 it is up since 00:00 last ok at 00:00
02:00 fra2 passes 40ms
02:01 it is up since 00:00 last ok at 02:00 in 40ms
