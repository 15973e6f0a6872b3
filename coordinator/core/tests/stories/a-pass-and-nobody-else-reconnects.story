# After a restart only one vantage reconnects. Its pass waits for the others for fifteen seconds, and no longer.
monitor http every 60s
place fra1 europe A
place fra2 europe B
place fra3 europe C

00:00 everybody is up
01:00 fra1 fails refused
01:00.1 the asked fail refused
01:05 time passes
01:05.1 the asked fail refused
01:05.2 the asked fail refused
  -> DOWN went-down since 01:00
01:30 the coordinator stops
01:59 the coordinator starts
01:59.5 fra2 connects
02:00 fra2 passes 10ms
  -> asks nobody
02:16 time passes
  -> round europe passed
  -> UP recovered since 02:00
