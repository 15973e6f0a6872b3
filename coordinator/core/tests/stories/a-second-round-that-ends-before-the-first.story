# An early second round ends before the pending first: its outcome is held until the first has its own, even across
# a restart.
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
01:05.1 fra2 fails refused
  -> nothing
01:05.2 fra3 fails refused
  -> nothing
01:05.3 it is up since 00:00 last ok at 00:00
01:06 the coordinator stops
01:07 the coordinator starts
01:08 everybody connects
01:10 fra1 fails timeout
  -> asks fra2 to confirm       # confirmations before the restart are lost
01:10.1 fra2 fails timeout
  -> round europe failed
  -> second round europe failed
  -> asks nobody
  -> DOWN went-down since 01:00, because connection refused, 2 rounds as evidence
