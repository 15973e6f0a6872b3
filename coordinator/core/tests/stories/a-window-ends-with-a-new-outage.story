# An outage that began in the window and continues at its end is announced then, dated from its real start; its
# recovery too.
monitor http every 60s
place fra1 europe A
place fra2 europe B

00:00 everybody is up
00:30 a window begins
01:00 fra1 fails refused
01:00.1 the asked fail refused
01:05 time passes
01:05.1 the asked fail refused
01:05.2 the asked fail refused
  -> DOWN since 01:00, was up
02:30 the window ends
  -> DOWN went-down since 01:00, was up, because connection refused, down since 01:00, 2 rounds as evidence
03:00 fra2 passes 80ms
  -> UP recovered since 03:00, was down, down since 01:00
