monitor http every 60s
place fra1 europe A
place fra2 europe B

00:00 everybody is up
01:00 fra1 fails refused
01:00.1 fra2 fails refused
  -> round europe failed
01:05 time passes
  -> asks fra1 for a second round
01:05.5 the coordinator stops
01:06 the coordinator starts
  -> nothing
01:08 everybody connects
  -> asks fra2 for a second round
01:08.1 fra2 fails refused
  -> asks fra1 to confirm
01:08.2 fra1 fails refused
  -> second round europe failed
  -> DOWN went-down since 01:00
