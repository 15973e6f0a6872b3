# A registry that can't be read is inconclusive, never "expiring".
monitor domain every 6h
place fra1 europe A
place sin1 asia B

00:00 the monitor is made
00:01 the asked pass
  -> UP since 00:00
10:00 sin1 cannot read the registry
  -> round asia inconclusive
  -> asks nobody
10:01 it is last ok at 00:01
