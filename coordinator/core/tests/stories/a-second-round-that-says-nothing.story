# An early second round cannot be confirmed. Once the first has failed, another second round is run.
monitor http every 60s
place fra1 europe A
place fra2 europe B
place fra3 europe A
place fra4 europe A

00:00 everybody is up
01:03 fra1 waits
  -> asks fra2 to confirm
01:03.1 fra2 fails refused
01:05 time passes
  -> asks fra3 for a second round
  -> asks fra2 to confirm
01:05.1 fra2 cannot look
01:05.2 fra3 fails refused
01:10 fra1 fails timeout
  -> second round europe unconfirmed
  -> round europe failed
  -> asks fra1 for a second round
  -> asks fra2 to confirm
01:10.1 fra1 fails refused
01:10.2 fra2 fails refused
  -> second round europe failed
  -> DOWN went-down since 01:00
