# Only one network cannot reach the target: disputed. No alert is sent, the owner sees both outcomes, the latency is
# not used.
monitor http every 60s threshold 100
place fra1 europe A
place fra2 europe B

00:00 everybody is up
01:00 fra1 fails timeout
  -> asks fra2 to confirm
01:00.1 fra2 passes 900ms
  -> round europe disputed
  -> asks nobody
01:01 it is last ok at 01:00
02:00 fra1 fails timeout
02:00.1 fra2 passes 900ms
  -> round europe disputed
02:01 it is up since 00:00
