# Down before and down after is no change, even with a recovery in between; the later recovery refers to the current
# outage.
monitor http every 60s
place fra1 europe A
place fra2 europe B

00:00 everybody is up
01:00 fra1 fails refused
01:00.1 the asked fail refused
01:05 time passes
01:05.1 the asked fail refused
01:05.2 the asked fail refused
  -> DOWN went-down since 01:00
01:30 a window begins
02:00 fra2 passes 80ms
  -> UP since 02:00
03:00 fra1 fails refused
03:00.1 the asked fail refused
03:05 time passes
03:05.1 the asked fail refused
03:05.2 the asked fail refused
  -> DOWN since 03:00
03:30 the window ends
  -> nothing
04:00 fra2 passes 80ms
  -> UP recovered since 04:00, down since 03:00
