# The target is back in Asia alone. The only other network there does not respond: vantages elsewhere have no say.
monitor http every 60s uptime asia
place sin1 asia A
place sin2 asia B
place fra1 europe B
place fra2 europe C

00:00 everybody is up
01:00 sin1 fails refused
01:00.1 sin2 fails refused
01:00.2 the asked fail refused
01:00.3 the asked fail refused
01:05 time passes
01:05.1 the asked fail refused
01:05.2 the asked fail refused
  -> DOWN went-down since 01:00
01:05.3 the asked fail refused
02:00 sin1 passes 50ms
  -> asks sin2 to confirm
02:04 time passes
  -> round asia passed
  -> UP recovered since 02:00
