# The third change within 30 minutes is flapping; after 30 minutes without a change the monitor is stable, and
# counting starts over. Alerts are still sent for every change.
monitor http every 60s repeat 20m
place fra1 europe A
place fra2 europe B

00:00 everybody is up
01:00 fra1 fails refused
01:00.1 fra2 fails refused
01:05 time passes
01:05.1 the asked fail refused
01:05.2 the asked fail refused
  -> DOWN went-down since 01:00
02:00 fra2 passes 80ms
  -> UP recovered since 02:00
03:00 fra1 fails refused
03:00.1 fra2 fails refused
03:05 time passes
03:05.1 the asked fail refused
03:05.2 the asked fail refused
  -> DOWN went-down since 03:00, flapping 3 times since 01:05.2
04:00 fra2 passes 80ms
  -> UP recovered since 04:00, flapping 4 times since 01:05.2
05:00 fra1 passes 80ms
07:00 the coordinator stops
08:00 the coordinator starts
08:01 everybody connects
09:00 fra2 passes 80ms
12:00 fra1 passes 80ms
15:00 fra2 passes 80ms
18:00 fra1 passes 80ms
21:00 fra2 passes 80ms
24:00 fra1 passes 80ms
27:00 fra2 passes 80ms
30:00 fra1 passes 80ms
33:00 fra2 passes 80ms
34:00 time passes
  -> steady up since 04:00 after 4 changes since 01:05.2
35:00 fra1 fails refused
35:00.1 fra2 fails refused
35:05 time passes
35:05.1 the asked fail refused
35:05.2 the asked fail refused
  -> DOWN went-down since 35:00
