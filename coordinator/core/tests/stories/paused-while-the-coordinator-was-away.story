# A monitor that was paused just before the coordinator was killed does not keep its old status.
monitor http every 60s
place fra1 europe A
place fra2 europe B

00:00 everybody is up
00:30 the coordinator stops
00:31 the monitor is paused
00:32 the coordinator starts
  -> UNKNOWN since 00:32
