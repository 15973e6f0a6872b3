# A region's own threshold takes precedence over the general one; a region without either is never slow. Slow
# regions are named while another counted region is not slow.
monitor http every 60s threshold asia=800 latency europe+asia
place fra1 europe A
place sin1 asia B

00:00 everybody is up
01:00 fra1 passes 5000ms
  -> round europe passed
01:30 sin1 passes 801ms
  -> SLOW went-slow since 01:30, latency 801ms, threshold 800ms
01:35 it is slow since 01:30 from asia
01:40 set threshold 300
  -> nothing
01:45 it is slow since 01:30 last
02:30 sin1 passes 700ms
  -> round asia passed
02:35 it is slow since 01:30 from europe
03:00 fra1 passes 200ms
  -> UP back-to-normal since 03:00
