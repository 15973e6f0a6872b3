# A changed threshold is applied to the existing readings, with an event.
monitor http every 60s
place fra1 europe A
place fra2 europe B

00:00 everybody is up
01:00 fra1 passes 400ms
  -> round europe passed
01:10 set threshold 300
  -> SLOW went-slow since 01:00, latency 400ms, threshold 300ms
01:20 set threshold 450
  -> UP back-to-normal since 01:20, latency 400ms, threshold 450ms
01:30 set threshold 350
  -> SLOW went-slow since 01:00
01:40 set threshold none
  -> UP back-to-normal since 01:40
