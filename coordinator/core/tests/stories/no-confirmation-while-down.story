# While a region is down its failed rounds are not confirmed again, and count as failed.
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
02:00 fra2 fails refused
  -> round europe failed
  -> asks nobody
03:03 fra1 waits
  -> nothing
03:10 fra1 fails timeout
  -> round europe failed
  -> asks nobody
03:11 it is down since 01:00 last failed at 03:10 with timed out connecting
