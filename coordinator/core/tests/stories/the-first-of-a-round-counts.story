# The first result of a round counts, from whichever vantage; repeated ones are dropped.
monitor http every 60s
place fra1 europe A
place fra2 europe B

00:00 everybody is up
01:00 fra1 passes 50ms round 7
  -> round europe passed
01:00.5 fra1 again
  -> nothing
01:01 fra2 fails refused round 7
  -> nothing
02:00 fra1 fails refused round 8
  -> asks fra2 to confirm
02:00.1 fra1 again
  -> nothing
02:00.2 fra2 fails refused
  -> round europe failed
02:00.3 fra1 again
  -> nothing
