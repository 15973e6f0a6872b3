# An outage that began in a window is announced at its end; still-down alerts follow only after that.
monitor heartbeat every 60m grace 5m repeat 5m
place fra1 europe A

00:00 the monitor is made
01:00 ping
  -> UP since 01:00
02:00 a window begins
03:00 ping fail
  -> DOWN since 03:00
12:30 the window ends
  -> DOWN went-down since 03:00, was up
13:00 time passes
  -> DOWN still-down since 03:00
18:00 time passes
  -> DOWN still-down since 03:00
