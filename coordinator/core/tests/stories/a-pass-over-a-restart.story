# The coordinator stops while a pass waits for confirmation: confirmation is requested again.
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
02:00 fra2 passes 10ms
  -> asks fra1 to confirm
02:00.1 the coordinator stops
02:01 the coordinator starts
  -> nothing
02:02 everybody connects
  -> asks fra1 to confirm
02:02.1 fra1 fails refused
  -> asks fra3 to confirm
02:02.2 fra3 fails refused
  -> round europe failed
02:03 it is down since 01:00
