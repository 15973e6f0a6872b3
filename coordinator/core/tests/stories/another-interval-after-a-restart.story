# The operator made the interval longer and restarted: rounds have lower numbers now, and count as before.
monitor http every 30s
place fra1 europe A
place fra2 europe B

00:00 everybody is up
00:30 fra1 passes
00:40 the coordinator stops
00:41 set every 60s
00:42 the coordinator starts
00:43 everybody connects
02:00 fra1 fails refused round 2
  -> asks fra2 to confirm
02:00.1 fra2 fails refused
  -> round europe failed
