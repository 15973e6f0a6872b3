# Europe is down, Asia has failed only once. A pass in Asia is a hint of recovery, so Europe is checked again
# without waiting for its next scheduled round, which may be most of an interval away.
monitor http every 60s
place fra1 europe A
place fra2 europe B
place sin1 asia A
place sin2 asia B

00:00 everybody is up
01:00 fra1 fails refused
01:00.1 fra2 fails refused
  -> round europe failed
01:00.2 the asked fail refused
01:00.3 the asked fail refused
  -> sweep round asia failed
01:05 time passes
  -> asks fra2 for a second round
  -> asks sin1 for a second round
01:05.1 fra2 fails refused
01:05.2 fra1 fails refused
  -> second round europe failed
  -> DOWN went-down since 01:00
01:06 sin1 passes
  -> asks fra1 to sweep
  -> scope europe
01:06.1 fra1 passes
  -> UP recovered since 01:06
