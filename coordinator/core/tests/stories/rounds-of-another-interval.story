# An agent queued rounds of the old interval. Their numbers do not fit the schedule: they are dropped, and block
# nothing.
monitor http every 30s
place fra1 europe A
place fra2 europe B

00:00 everybody is up
01:00 set every 60s
01:30 fra1 passes 40ms round 28800000      # twice the current number
  -> nothing
02:00 fra2 passes 40ms round 2
  -> round europe passed
03:00 fra1 passes 40ms round 3
  -> round europe passed
