# Paused: unknown, no rounds, no alerts, and an open outage ends without one. Resumed: first rounds at once.
monitor http every 60s
place fra1 europe A
place fra2 europe B

00:00 everybody is up
01:00 fra1 fails refused
01:00.1 the asked fail refused
01:05 time passes
01:05.1 the asked fail refused
01:05.2 the asked fail refused
  -> DOWN went-down since 01:00
02:00 the monitor is paused
  -> UNKNOWN since 02:00, was down
02:30 fra2 passes 40ms
  -> nothing
04:00 fra1 disconnects
10:00 fra1 connects
  -> nothing
20:00 the monitor is resumed
  -> asks fra1 for a first round
20:00.1 fra1 passes 40ms
  -> first round europe passed
  -> UP since 20:00
