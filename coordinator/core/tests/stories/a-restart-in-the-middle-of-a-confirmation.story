# The coordinator stops while a confirmation is open. After the restart it is requested again as soon as a vantage
# is available.
monitor http every 60s
place fra1 europe A
place fra2 europe B

00:00 everybody is up
01:00 fra1 fails refused
  -> asks fra2 to confirm
01:00.5 the coordinator stops
01:02 the coordinator starts
  -> nothing
01:03 fra1 connects
  -> nothing
01:04 fra2 connects
  -> asks fra2 to confirm
01:04.1 fra2 fails refused
  -> round europe failed
01:05 time passes
  -> asks fra2 for a second round
01:05.1 fra2 fails refused
01:05.2 fra1 fails refused
  -> second round europe failed
  -> DOWN went-down since 01:00
