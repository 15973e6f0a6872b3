# A changed period does not take back the time that our absence gave.
monitor heartbeat every 60m grace 5m
place fra1 europe A

00:00 the monitor is made
01:00 ping
  -> UP since 01:00
56:00 the coordinator stops
80:00 the coordinator starts
  -> nothing
81:00 set every 61m
  -> nothing
146:00 time passes
  -> DOWN went-down since 146:00
