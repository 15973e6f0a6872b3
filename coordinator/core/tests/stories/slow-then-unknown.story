# Readings expire before a region goes stale: back to normal, then unknown. The pass that ends unknown leads to up.
monitor http every 60s threshold 500
place fra1 europe A
place fra2 europe B

00:00 everybody is up
01:00 fra1 passes 700ms
  -> SLOW went-slow since 01:00
02:00 fra2 cannot look
03:00 fra1 cannot look
04:00 time passes               # the reading is three intervals old
  -> UP back-to-normal since 04:00
06:00 time passes
  -> UNKNOWN since 06:00
07:00 fra1 passes 700ms
  -> UP since 07:00
08:00 fra1 passes 700ms
  -> SLOW went-slow since 08:00
