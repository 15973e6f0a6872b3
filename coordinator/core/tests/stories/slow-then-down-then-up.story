# Recovered closes the earlier went-slow and clears all slowness, which is judged from the next reading on.
monitor http every 60s threshold 500
place fra1 europe A
place fra2 europe B

00:00 everybody is up
01:00 fra1 passes 700ms
  -> SLOW went-slow since 01:00
02:00 fra2 fails refused
02:00.1 the asked fail refused
02:05 time passes
02:05.1 the asked fail refused
02:05.2 the asked fail refused
  -> DOWN went-down since 02:00, was slow
03:00 fra1 passes 700ms
  -> UP recovered since 03:00, was down
04:00 fra2 passes 100ms
05:00 fra1 passes 700ms
  -> SLOW went-slow since 05:00
