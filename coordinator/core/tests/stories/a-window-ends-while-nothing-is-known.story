# Announced as down before the window, up within it, and unknown at its end: no alert then; the next pass announces
# the recovery.
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
  -> UP since 02:00, was down
07:00 time passes
  -> UNKNOWN since 07:00
08:00 the window ends
  -> nothing
09:00 fra1 passes 80ms
  -> UP recovered since 09:00, was unknown, down since 01:00
