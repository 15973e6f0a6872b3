# While it is down, another region joins and leaves: the scope is updated without an alert.
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
01:00.2 the asked pass
01:05 time passes
01:05.1 the asked fail refused
01:05.2 the asked fail refused
  -> second round europe failed
  -> DOWN went-down since 01:00 from europe
02:00 sin1 fails refused
02:00.1 sin2 fails refused
  -> round asia failed
  -> asks nyc1 to sweep       # a new suspicion sweeps even while down
  -> asks fra2 to sweep
  -> scope europe+asia
02:00.2 nyc1 fails refused
02:00.3 fra2 fails refused
02:00.4 the asked fail refused
  -> sweep round north-america failed
  -> scope everywhere
