# The coordinator was away when the ping may have arrived: from its return the job gets its grace, the time away and
# five minutes, once between two pings.
monitor heartbeat every 60m grace 5m
place fra1 europe A

00:00 the monitor is made
01:00 ping
  -> UP since 01:00
56:00 the coordinator stops
80:00 the coordinator starts
  -> deadline moved to 114:00
113:00 it is up since 01:00
113:30 the coordinator stops
115:00 the coordinator starts
  -> nothing
115:00 time passes
  -> DOWN went-down since 114:00
