# Nothing is late before the first ping, also after a pause.
monitor heartbeat every 60m grace 5m
place fra1 europe A

00:00 the monitor is made
10:00 the monitor is paused
  -> nothing
20:00 the monitor is resumed
  -> nothing
200:00 it is unknown never checked
201:00 ping
  -> UP since 201:00
