# An outage that began within the window, with an unknown status at its end, was never announced: a pass ends it
# without an alert, and an outage after that is announced.
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
01:30 fra1 is revoked
01:31 fra2 is revoked
  -> UNKNOWN since 01:31
02:00 the window ends
  -> nothing
02:30 osl1 joins europe C
  -> nothing
02:31 osl2 joins europe D
03:00 osl1 passes 80ms
  -> UP since 03:00, was unknown
04:00 osl1 fails refused
04:00.1 the asked fail refused
04:05 time passes
04:05.1 the asked fail refused
04:05.2 the asked fail refused
  -> DOWN went-down since 04:00
