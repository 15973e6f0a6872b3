# Two scheduled rounds of a short interval: four seconds apart do not count as two, five do.
monitor http every 30s
place fra1 europe A
place fra2 europe B

00:00 everybody is up
01:00 fra1 fails refused
01:00.1 fra2 fails refused
  -> round europe failed
01:04 fra2 fails refused
  -> asks fra1 to confirm
01:04.1 fra1 fails refused
  -> round europe failed
  -> asks nobody
01:05 time passes
  -> asks fra2 for a second round
01:05.1 fra1 fails refused scheduled
  -> asks fra2 to confirm
01:05.2 fra2 is silent       # for the second round
  -> asks fra1 for a second round
01:05.3 fra2 fails refused
  -> round europe failed
  -> DOWN went-down since 01:00
