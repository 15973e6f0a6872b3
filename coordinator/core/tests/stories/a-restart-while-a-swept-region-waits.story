# The round of a swept region is pending, with its second round in progress, when the coordinator stops: it is
# requested again, and the second round is void.
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
01:05.5 the coordinator stops
01:06 the coordinator starts
  -> nothing
01:07 everybody connects
  -> asks sin1 to sweep
  -> asks fra2 for a second round
01:07.1 sin1 passes 200ms
  -> sweep round asia passed
01:07.2 fra2 fails refused
01:07.3 fra1 fails refused
  -> second round europe failed
  -> DOWN went-down since 01:00 from europe
02:00 fra1 passes 20ms
  -> asks fra2 to confirm
02:00.1 fra2 passes 20ms
  -> UP recovered since 02:00
02:30 sin1 fails refused
02:30.1 sin2 fails refused
  -> round asia failed
  -> asks nyc1 to sweep
  -> asks fra2 to sweep
