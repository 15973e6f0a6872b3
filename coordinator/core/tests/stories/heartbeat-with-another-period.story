# A changed period moves the deadline.
monitor heartbeat every 60m grace 5m
place fra1 europe A

00:00 the monitor is made
01:00 ping
  -> UP since 01:00
02:00 set every 10m
  -> nothing
16:00 time passes
  -> DOWN went-down since 16:00
