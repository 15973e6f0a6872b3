# Only Asia cannot reach the target. The sweep passes elsewhere: down, but only in Asia.
monitor http every 60s
place sin1 asia A
place sin2 asia B
place fra1 europe C

00:00 everybody is up
01:00 sin1 fails timeout
  -> asks sin2 to confirm
01:00.2 sin2 fails timeout
  -> round asia failed
  -> asks fra1 to sweep
01:00.3 fra1 passes 80ms
  -> sweep round europe passed
01:05 time passes
  -> asks sin1 for a second round
01:05.2 sin1 fails timeout
  -> asks sin2 to confirm
01:05.4 sin2 fails timeout
  -> second round asia failed
  -> DOWN went-down since 01:00 from asia, because timed out connecting
01:06 it is down since 01:00 from asia
