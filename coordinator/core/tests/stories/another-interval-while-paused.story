# The interval changes while the monitor is paused: its rounds are renumbered all the same, and count once it is
# resumed.
monitor http every 60s
place fra1 europe A
place fra2 europe B

00:00 everybody is up
01:00 fra1 passes 80ms round 1
02:00 the monitor is paused
  -> UNKNOWN since 02:00
03:00 set every 300s
04:00 the monitor is resumed
  -> asks fra2 for a first round
04:01 fra2 cannot look
10:00 fra1 passes 80ms round 2
  -> UP since 10:00
