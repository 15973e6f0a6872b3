# An outage announced before the window that is over at its end is announced as recovered; a restart in between
# changes nothing.
monitor http every 60s threshold 500
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
  -> UP since 02:00, was down
02:10 the coordinator stops
02:20 the coordinator starts
02:21 everybody connects
02:30 the window ends
  -> UP recovered since 02:00, was down, down since 01:00, after 60.000s
