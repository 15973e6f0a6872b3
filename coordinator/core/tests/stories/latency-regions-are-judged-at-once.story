monitor http every 60s threshold 300
place fra1 europe A
place sin1 asia B

00:00 everybody is up
01:00 fra1 passes 100ms
01:30 sin1 passes 400ms
  -> round asia passed
01:40 set latency asia
  -> SLOW went-slow since 01:30, latency 400ms
01:50 set latency europe
  -> UP back-to-normal since 01:50, latency 100ms
