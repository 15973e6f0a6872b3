# Announced as slow before the window, and unknown at its end: the next pass announces back to normal.
monitor http every 60s threshold 500
place fra1 europe A
place fra2 europe B

00:00 everybody is up
01:00 fra1 passes 700ms
  -> SLOW went-slow since 01:00
01:30 a window begins
02:00 fra1 passes 80ms
  -> UP since 02:00, was slow
07:00 time passes
  -> UNKNOWN since 07:00
08:00 the window ends
  -> nothing
09:00 fra1 passes 80ms
  -> UP back-to-normal since 09:00
