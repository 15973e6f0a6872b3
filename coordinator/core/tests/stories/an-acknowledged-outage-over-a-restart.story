# A restart keeps the acknowledgement of a running outage.
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
03:00 set acknowledged 01:00
  -> nothing
04:00 the coordinator stops
04:10 the coordinator starts
04:11 everybody connects
04:20 fra1 fails refused
30:00 set acknowledged none
  -> nothing
31:00 time passes
  -> DOWN still-down since 01:00
