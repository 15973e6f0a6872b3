# The status stays; a pass of the new target ends the outage.
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
02:00 the target is changed
  -> asks fra1 for a first round
02:00.1 it is down since 01:00
02:00.2 fra1 passes 40ms
  -> UP recovered since 02:00
