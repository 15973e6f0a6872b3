# Another interval numbers rounds anew: smaller numbers than before are no repetitions.
monitor http every 30s
place fra1 europe A
place fra2 europe B

00:00 everybody is up
01:00 fra1 passes 40ms round 60000
  -> round europe passed
01:10 set every 60s
02:00 fra2 passes 40ms round 30001
  -> round europe passed
