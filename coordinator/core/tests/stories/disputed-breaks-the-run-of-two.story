# A dispute between two failed rounds: they are not consecutive.
monitor http every 30s
place fra1 europe A
place fra2 europe B

00:00 everybody is up
01:00 fra1 fails refused
01:00.1 fra2 fails refused
  -> round europe failed
01:05 time passes
01:05.1 fra1 fails refused
  -> asks fra2 to confirm
01:05.2 fra2 passes 50ms
  -> second round europe disputed
01:30 fra1 fails refused
01:30.1 fra2 fails refused
  -> round europe failed
01:35 time passes
  -> asks fra2 for a second round
01:35.1 fra2 passes 50ms
  -> second round europe passed
