# Asia is still pending when Europe's second round begins: its own begins at the same instant.
monitor http every 60s
place fra1 europe A
place fra2 europe B
place sin1 asia C
place sin2 asia D
place nyc1 north-america E

00:00 everybody is up
01:00 fra1 fails refused
01:00.1 fra2 fails refused
  -> asks nyc1 to sweep
  -> asks sin2 to sweep
01:00.2 nyc1 passes 90ms
01:03.2 sin2 waits
  -> asks sin1 to confirm
01:05 time passes
  -> asks fra2 for a second round
  -> asks sin1 for a second round
  -> asks sin2 to confirm
01:05.1 fra2 fails refused
01:05.2 fra1 fails refused
  -> second round europe failed
01:08.2 time passes           # Asia's confirmation is open: wait three seconds for it
  -> DOWN went-down since 01:00 from europe
01:10.1 sin2 fails timeout
  -> nothing
01:10.5 sin1 fails timeout
  -> sweep round asia failed
  -> scope europe+asia
  -> asks nobody
01:15 sin1 fails timeout
  -> nothing
01:15.1 sin2 fails timeout
  -> second round asia failed
  -> asks nobody
