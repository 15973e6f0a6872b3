# A round is still pending when its second one is due: the second begins, is confirmed from its start, and counts
# once the first has failed.
monitor http every 60s
place fra1 europe A
place fra2 europe B
place fra3 europe C

00:00 everybody is up
01:03 fra1 waits
  -> asks fra2 to confirm
01:05 time passes
  -> asks fra1 for a second round
  -> asks fra3 to confirm
01:05.1 fra3 fails refused
  -> nothing
01:10 fra1 fails timeout
  -> nothing
01:13 fra2 fails timeout         # confirms the first round
  -> round europe failed
  -> asks nobody
01:15 fra1 fails timeout         # result of the second round
  -> second round europe failed
  -> DOWN went-down since 01:00, because timed out connecting, 2 rounds as evidence
