# While an outage lasts, alerts are repeated at whole intervals since it began; the next outage has its own.
monitor http every 60s repeat 5m
place fra1 europe A
place fra2 europe B

00:00 everybody is up
01:00 fra1 fails refused
01:00.1 fra2 fails refused
01:05 time passes
01:05.1 the asked fail refused
01:05.2 the asked fail refused
  -> DOWN went-down since 01:00
06:00 time passes
  -> DOWN still-down since 01:00, was down, because connection refused, down since 01:00, 0 rounds as evidence
07:00 fra1 fails refused
  -> round europe failed
11:00 time passes
  -> DOWN still-down since 01:00, down since 01:00
15:59 fra2 passes 80ms
  -> UP recovered since 15:59, down since 01:00
17:00 fra1 fails refused
17:00.1 fra2 fails refused
17:05 time passes
17:05.1 the asked fail refused
17:05.2 the asked fail refused
  -> DOWN went-down since 17:00
22:00 time passes
  -> DOWN still-down since 17:00
