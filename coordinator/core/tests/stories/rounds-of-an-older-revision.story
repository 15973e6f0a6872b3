# The target was changed meanwhile: results for the old one are history only. The status stays, the counters are
# reset.
monitor http every 60s
place fra1 europe A
place fra2 europe B

00:00 everybody is up
01:00 fra1 fails refused
01:00.1 fra2 fails refused
  -> round europe failed
01:03 the target is changed
  -> asks fra1 for a first round
01:03.5 fra2 fails refused outdated
  -> round europe unconfirmed
  -> asks nobody
01:03.6 fra1 fails refused
  -> asks fra2 to confirm
01:03.7 fra2 fails refused
  -> first round europe failed
01:08 time passes
  -> asks fra1 for a second round
01:08.1 fra1 fails refused
01:08.2 fra2 fails refused
  -> second round europe failed
  -> DOWN went-down since 01:03
