# One vantage fails every check: it does not prolong an outage, since a third network sees the target up.
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
02:00.1 fra2 fails refused
  -> asks fra3 to confirm
02:00.2 fra3 passes 20ms
  -> round europe passed
  -> UP recovered since 02:00, because connection refused, down since 01:00
