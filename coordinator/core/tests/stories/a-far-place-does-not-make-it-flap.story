# Vantages of a region take turns. While the newest reading of any of them is above the threshold, the monitor is
# slow.
monitor http every 60s threshold 500
place fra1 europe A
place fra2 europe B

00:00 everybody is up
01:00 fra1 passes 700ms
  -> SLOW went-slow since 01:00
02:00 fra2 passes 90ms
  -> round europe passed
03:00 fra1 passes 700ms
  -> round europe passed
04:00 fra2 passes 90ms
05:00 fra1 passes 90ms
  -> UP back-to-normal since 05:00, latency 90ms
