# The second round was due while the coordinator was away: it is requested as soon as a vantage is available.
monitor http every 60s
place fra1 europe A
place fra2 europe B

00:00 everybody is up
01:00 fra1 fails refused
01:00.1 fra2 fails refused
  -> round europe failed
01:02 the coordinator stops
01:20 the coordinator starts
  -> nothing
01:23 everybody connects
  -> nothing
01:24 time passes
  -> asks fra1 for a second round
01:24.1 fra1 fails refused
01:24.2 fra2 fails refused
  -> DOWN went-down since 01:00
