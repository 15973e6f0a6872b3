# Slow goes straight to unknown when no vantage is left; the pass that ends unknown sends back-to-normal.
monitor http every 60s threshold 500
place fra1 europe A

00:00 everybody is up
01:00 fra1 passes 900ms
  -> SLOW went-slow since 01:00
02:00 fra1 is revoked
  -> UNKNOWN since 02:00, was slow
03:00 fra2 joins europe B
04:00 fra2 passes 50ms
  -> UP back-to-normal since 04:00, latency 50ms, threshold 500ms, after 180.000s
