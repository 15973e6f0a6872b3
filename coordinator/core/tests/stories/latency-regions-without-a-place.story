# If none of the latency regions has an enrolled vantage, every region with one is judged. A pinned region counts
# itself.
monitor http every 60s threshold 300 latency africa
place fra1 europe A
place sin1 asia B

00:00 everybody is up
01:30 sin1 passes 400ms
  -> SLOW went-slow since 01:30
01:40 set pinned europe
  -> UP back-to-normal since 01:40
02:30 fra1 passes 400ms
  -> SLOW went-slow since 02:30
