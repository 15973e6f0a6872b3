# The vantage of a pending round is gone: another one runs it, and the early second round is void.
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
01:06 sin2 is silent
  -> asks sin1 to sweep
  -> DOWN went-down since 01:00 from europe
01:06.1 sin2 is silent
  -> nothing
01:06.2 sin1 fails refused       # its confirmation and its second round are void
01:06.3 sin1 fails refused
  -> nothing
01:06.4 sin1 passes 200ms
  -> sweep round asia passed
02:00 fra1 passes 20ms
  -> asks fra2 to confirm
02:00.1 fra2 passes 20ms
  -> UP recovered since 02:00
02:30 sin1 fails refused
02:30.1 sin2 fails refused
  -> round asia failed
  -> asks nyc1 to sweep
  -> asks fra1 to sweep
