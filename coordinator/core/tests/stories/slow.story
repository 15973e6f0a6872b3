# Above the threshold: slow since that reading. Below it: back to normal since that round.
monitor http every 60s threshold 500
place fra1 europe A
place nyc1 north-america B

00:00 everybody is up
01:00 nyc1 passes 900ms        # response times are judged in Europe by default
  -> round north-america passed
01:30 fra1 passes 500ms        # not above
  -> round europe passed
02:30 fra1 passes 501ms
  -> SLOW went-slow since 02:30, latency 501ms, threshold 500ms
03:00 nyc1 passes 100ms
03:30 fra1 passes 80ms
  -> UP back-to-normal since 03:30, latency 80ms, threshold 500ms, after 60.000s
