# Nothing is announced twice, and no region is stale because of the time before the restart.
monitor http every 60s
place fra1 europe A
place fra2 europe B

00:00 everybody is up
01:00 fra1 fails refused
01:00.1 fra2 fails refused
01:05 time passes
01:05.1 the asked fail refused
01:05.2 the asked fail refused
  -> DOWN went-down since 01:00
02:00 the coordinator stops
20:00 the coordinator starts
  -> nothing
20:02 everybody connects
  -> nothing
20:03 it is down since 01:00
20:10 fra1 fails refused
  -> round europe failed
20:20 fra2 passes 30ms
  -> UP recovered since 20:20
