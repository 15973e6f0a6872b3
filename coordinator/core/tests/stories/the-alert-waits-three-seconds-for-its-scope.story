# Europe is down, Asia's second round is still pending. After three seconds the alert is sent with the scope known
# so far.
monitor http every 60s
place fra1 europe A
place fra2 europe B
place sin1 asia C
place sin2 asia D
place nyc1 north-america E

00:00 everybody is up
01:00 fra1 fails refused
01:00.1 fra2 fails refused
  -> round europe failed
  -> asks nyc1 to sweep
  -> asks sin2 to sweep
01:00.2 nyc1 passes 90ms
01:00.3 sin2 fails refused
  -> asks sin1 to confirm
01:00.4 sin1 fails refused
  -> sweep round asia failed
01:05 time passes
  -> asks fra2 for a second round
  -> asks sin1 for a second round
01:05.1 fra2 fails refused
01:05.2 fra1 fails refused
  -> second round europe failed
01:08.2 time passes
  -> DOWN went-down since 01:00 from europe+asia
01:09 sin1 passes 300ms
  -> second round asia passed
  -> scope europe
