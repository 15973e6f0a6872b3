monitor heartbeat every 60m grace 5m
place fra1 europe A

00:00 the monitor is made
01:00 ping
  -> UP since 01:00
10:00 the monitor is paused
  -> UNKNOWN since 10:00
20:00 ping fail
  -> nothing
90:00 the monitor is resumed
  -> nothing
91:00 ping
  -> UP since 91:00
