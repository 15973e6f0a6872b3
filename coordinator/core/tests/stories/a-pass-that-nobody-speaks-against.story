# A recovery is not withheld if a vantage has no result: each has four seconds, and where the rest can't outvote the pass, it
# counts.
monitor http every 60s
place fra1 europe A
place fra2 europe B
place fra3 europe C

00:00 everybody is up
01:00 fra1 fails refused
01:00.1 the asked fail refused
01:05 time passes
01:05.1 the asked fail refused
01:05.2 the asked fail refused
  -> DOWN went-down since 01:00
02:00 fra1 passes 20ms
  -> asks fra2 to confirm
02:00.1 fra2 cannot look           # the one that is left can't outvote it alone
  -> round europe passed
  -> UP recovered since 02:00, because connection refused, down since 01:00
03:00 fra1 fails refused
03:00.1 the asked fail refused
03:05 time passes
03:05.1 the asked fail refused
03:05.2 the asked fail refused
  -> DOWN went-down since 03:00
04:00 fra1 passes 20ms
  -> asks fra2 to confirm
04:04 time passes
  -> round europe passed
  -> UP recovered since 04:00, down since 03:00
