# Two vantages run the same round (one was assumed to be away). The pending one finishes second and is dropped.
monitor http every 60s
place fra1 europe A
place fra2 europe B

00:00 everybody is up
01:03 fra1 waits round 7
  -> asks fra2 to confirm
01:04 fra2 passes 50ms round 7
  -> round europe passed
01:05 fra2 is silent
01:10 fra1 fails timeout
  -> nothing
01:11 fra1 waits round 7
  -> nothing
