# The coordinator was away long before the ping was expected: the deadline stays.
monitor heartbeat every 60m grace 5m
place fra1 europe A

00:00 the monitor is made
01:00 ping
  -> UP since 01:00
10:00 the coordinator stops
40:00 the coordinator starts
  -> nothing
66:00 time passes
  -> DOWN went-down since 66:00
