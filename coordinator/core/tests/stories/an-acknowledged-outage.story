# An acknowledged outage has no still-down alerts; withdrawn, they go on from the next interval. The next outage has its own.
monitor http every 60s repeat 5m
place fra1 europe A
place fra2 europe B

00:00 everybody is up
01:00 fra1 fails refused
01:00.1 fra2 fails refused
01:05 time passes
01:05.1 the asked fail refused
01:05.2 the asked fail refused
  -> DOWN went-down since 01:00
06:00 time passes
  -> DOWN still-down since 01:00
10:00 set acknowledged 01:00
  -> nothing
17:00 set acknowledged none
  -> nothing
21:00 time passes
  -> DOWN still-down since 01:00
22:00 set acknowledged 01:00
  -> nothing
40:00 fra1 passes 80ms
  -> UP recovered since 40:00, down since 01:00
42:00 fra1 fails refused
42:00.1 fra2 fails refused
42:05 time passes
42:05.1 the asked fail refused
42:05.2 the asked fail refused
  -> DOWN went-down since 42:00
47:00 time passes
  -> DOWN still-down since 42:00
