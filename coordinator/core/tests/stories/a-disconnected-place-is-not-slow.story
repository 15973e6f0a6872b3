# Only connected vantages make a region slow.
monitor http every 60s threshold 500
place fra1 europe A
place fra2 europe B

00:00 everybody is up
01:00 fra1 passes 700ms
  -> SLOW went-slow since 01:00
02:00 fra2 passes 90ms
02:10 fra1 disconnects
  -> UP back-to-normal since 02:10, latency 90ms, threshold 500ms
