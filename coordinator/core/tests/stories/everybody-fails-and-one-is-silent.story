# Regions without data are neither down nor up: if no region is up, it is down everywhere.
monitor http every 60s
place fra1 europe A
place fra2 europe B
place sin1 asia C

00:00 the monitor is made
00:01 fra1 fails refused
00:01.1 fra2 fails refused
  -> first round europe failed
  -> asks nobody
00:02 sin1 is silent
00:05 time passes
00:05.1 the asked fail refused
00:05.2 the asked fail refused
  -> DOWN went-down since 00:00
