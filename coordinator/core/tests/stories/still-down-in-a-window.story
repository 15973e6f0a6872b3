# No alerts while a window covers the monitor. After that the same times apply as before.
monitor heartbeat every 60m grace 5m repeat 5m
place fra1 europe A

00:00 the monitor is made
01:00 ping
  -> UP since 01:00
02:00 ping fail
  -> DOWN went-down since 02:00
07:00 time passes
  -> DOWN still-down since 02:00
08:00 a window begins
18:30 the window ends
  -> nothing
22:00 time passes
  -> DOWN still-down since 02:00, down since 02:00
23:00 ping
  -> UP recovered since 23:00
