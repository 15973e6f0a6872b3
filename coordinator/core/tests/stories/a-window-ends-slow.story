# Down before and slow after: recovered, then went-slow. Slow before and up after: back to normal.
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
  -> UP since 02:00
03:00 fra1 passes 700ms
  -> SLOW since 03:00
03:30 the window ends
  -> UP recovered since 03:00, was down
  -> SLOW went-slow since 03:00, was up, latency 700ms, threshold 500ms
03:40 a window begins
04:00 fra1 passes 90ms
  -> UP since 04:00, was slow
04:30 the window ends
  -> UP back-to-normal since 04:00, was slow, latency 90ms, threshold 500ms, after 60.000s
