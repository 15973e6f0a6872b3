# A region whose failure arrives after the other second rounds have begun starts its own at that time. It was not
# pending long enough to start together with the others.
monitor http every 60s
place fra1 europe A
place fra2 europe B
place sin1 asia C
place sin2 asia D
place nyc1 north-america E

00:00 everybody is up
01:00 fra1 fails refused
01:03 fra2 fails refused
  -> asks nyc1 to sweep
  -> asks sin2 to sweep
01:03.2 nyc1 passes 90ms
01:05 time passes
  -> asks fra1 for a second round
  -> asks nobody
01:05.1 fra1 fails refused
01:05.2 fra2 fails refused
  -> second round europe failed
  -> DOWN went-down since 01:00 from europe
01:06.2 sin2 waits
  -> asks sin1 to confirm
  -> asks nobody
01:13.1 sin2 fails timeout
  -> nothing
01:13.5 sin1 fails timeout
  -> sweep round asia failed
  -> scope europe+asia
  -> asks sin2 for a second round
  -> asks sin1 to confirm
