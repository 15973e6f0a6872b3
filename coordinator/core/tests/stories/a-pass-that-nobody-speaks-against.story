# A recovery is not withheld because vantages return no outcome: each has four seconds, and if none is left the pass
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
02:00.1 fra2 cannot look
  -> asks fra3 to confirm
02:04.1 time passes
  -> round europe passed
  -> UP recovered since 02:00, because connection refused, down since 01:00
