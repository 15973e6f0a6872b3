# One network in the whole mesh, with repetition enabled: the same network checks again after five seconds instead.
monitor http every 60s confirmation repeat
place fra1 europe A
place fra2 europe A

00:00 everybody is up
01:00 fra1 fails refused
  -> nothing
01:05 time passes
  -> asks fra2 to confirm
01:05.1 fra2 fails refused
  -> round europe failed
  -> asks fra1 for a second round
01:05.3 fra1 fails refused
  -> nothing
01:10.3 time passes
  -> asks fra2 to confirm
01:10.4 fra2 fails refused
  -> second round europe failed
  -> DOWN went-down since 01:00
