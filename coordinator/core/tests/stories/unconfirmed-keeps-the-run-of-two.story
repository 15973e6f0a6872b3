# No vantage on another network could respond: the round does not count, and does not reset the run.
monitor http every 60s
place fra1 europe A
place fra2 europe B

00:00 everybody is up
01:00 fra1 fails refused
01:00.1 fra2 fails refused
  -> round europe failed
01:05 time passes
01:05.1 fra1 fails refused
  -> asks fra2 to confirm
01:05.2 fra2 cannot look
  -> second round europe unconfirmed
01:06 it is up since 00:00 last failed at 01:00 with connection refused
02:00 fra1 fails refused
  -> asks fra2 to confirm
02:00.1 fra2 fails refused
  -> round europe failed
  -> DOWN went-down since 01:00
