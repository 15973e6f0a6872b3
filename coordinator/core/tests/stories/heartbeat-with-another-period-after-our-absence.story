# A changed period does not take back the extension for the coordinator's absence.
monitor heartbeat every 60m grace 5m
place fra1 europe A

00:00 the monitor is made
01:00 ping
  -> UP since 01:00
56:00 the coordinator stops
80:00 the coordinator starts
  -> deadline moved to 114:00
81:00 set every 61m
  -> nothing
115:00 time passes
  -> DOWN went-down since 115:00
