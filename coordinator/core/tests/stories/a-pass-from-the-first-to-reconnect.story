# After a restart the first vantage to reconnect passes. It waits for the others, who see the target fail.
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
02:00.5 fra1 connects
02:01 time passes
  -> asks nobody
02:01.5 fra3 connects
  -> asks fra1 to confirm
02:02.2 fra1 fails refused
  -> asks fra3 to confirm
02:02.3 fra3 fails refused
  -> round europe failed
02:03 it is down since 01:00
