# After fifteen seconds a failure can no longer be confirmed.
monitor http every 60s
place fra1 europe A
place fra2 europe B

00:00 everybody is up
01:00 fra1 fails refused
  -> asks fra2 to confirm
01:00.5 the coordinator stops
01:10 the coordinator starts
01:16 time passes
  -> round europe unconfirmed
01:20 everybody connects
  -> nothing
01:21 it is up since 00:00
