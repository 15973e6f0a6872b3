# A restart repeats no alert, and alerts that fell due meanwhile are skipped.
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
06:00.1 the coordinator stops
06:00.2 the coordinator starts
  -> nothing
06:01 everybody connects
  -> nothing
11:00 time passes
  -> DOWN still-down since 01:00
12:00 the coordinator stops
22:30 the coordinator starts
  -> nothing
22:31 everybody connects
  -> nothing
26:00 time passes
  -> DOWN still-down since 01:00
