# A vantage that passes every check does not end an outage: two other networks see the target fail, and the round
# counts as failed.
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
02:00 fra2 passes 10ms
  -> asks fra1 to confirm
02:00.1 fra1 fails refused
  -> asks fra3 to confirm
02:00.2 fra3 fails refused
  -> round europe failed
02:01 it is down since 01:00
03:00 fra3 passes 20ms
  -> asks fra1 to confirm
03:00.1 fra1 passes 10ms
  -> round europe passed
  -> UP recovered since 03:00, because connection refused, down since 01:00
