# A new or changed interval also counts from the start of the outage, and applies only from now on.
monitor http every 60s
place fra1 europe A
place fra2 europe B

00:00 everybody is up
01:00 fra1 fails refused
01:00.1 fra2 fails refused
01:05 time passes
01:05.1 the asked fail refused
01:05.2 the asked fail refused
  -> DOWN went-down since 01:00
20:00 set repeat 10m
  -> nothing
21:00 time passes
  -> DOWN still-down since 01:00
28:00 set repeat 5m
  -> nothing
31:00 time passes
  -> DOWN still-down since 01:00
35:00 set repeat 60m
  -> nothing
61:00 time passes
  -> DOWN still-down since 01:00
61:30 set repeat off
  -> nothing
200:00 the monitor is paused
  -> UNKNOWN since 200:00
