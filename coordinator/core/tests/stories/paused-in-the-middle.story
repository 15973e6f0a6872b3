# Paused in the middle of a suspicion: later responses are dropped.
monitor http every 60s
place fra1 europe A
place fra2 europe B

00:00 everybody is up
01:00 fra1 fails refused
01:00.1 fra2 fails refused
  -> round europe failed
01:05 time passes
01:05.1 the monitor is paused
  -> UNKNOWN since 01:05.1
01:05.2 the asked fail refused
  -> nothing
30:00 it is unknown
