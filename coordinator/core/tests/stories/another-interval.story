# A changed interval renumbers rounds: lower numbers than before are not repetitions.
monitor http every 30s
place fra1 europe A
place fra2 europe B

00:00 everybody is up
01:00 fra1 passes 40ms round 2
  -> round europe passed
01:10 set every 60s
02:00 fra2 passes 40ms round 2      # half the previous number
  -> round europe passed
02:30 set every 30s
02:31 fra1 passes 40ms round 5
  -> round europe passed
02:40 set every 60s
03:00 fra2 passes 40ms round 3
  -> round europe passed
