# We were away when the ping may have come: the job gets its period and grace anew from our return, once.
monitor heartbeat every 60m grace 5m
place fra1 europe A

00:00 the monitor is made
01:00 ping
  -> UP since 01:00
56:00 the coordinator stops
80:00 the coordinator starts
  -> nothing
144:00 it is up since 01:00
144:30 the coordinator stops
146:00 the coordinator starts
  -> nothing
146:00 time passes
  -> DOWN went-down since 145:00
