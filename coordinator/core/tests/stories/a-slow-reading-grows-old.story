# A reading is valid for three intervals.
monitor http every 60s threshold 500
place fra1 europe A
place fra2 europe B

00:00 everybody is up
01:00 fra1 passes 700ms
  -> SLOW went-slow since 01:00
02:00 fra2 passes 90ms
03:00 fra2 passes 90ms
04:00 time passes
  -> UP back-to-normal since 04:00
