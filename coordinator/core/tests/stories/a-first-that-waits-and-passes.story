# The first round is pending for six seconds and then passes, or another network passes: the early second round does
# not count, whatever its outcome and whenever it ends.
monitor http every 60s
place fra1 europe A
place fra2 europe B

00:00 everybody is up
01:03 fra1 waits
  -> asks fra2 to confirm
01:05 time passes
  -> asks fra1 for a second round
  -> asks fra2 to confirm
01:05.1 fra2 fails refused
  -> nothing
01:05.2 fra2 fails refused
  -> nothing
01:06 fra1 passes 6000ms
  -> round europe passed
01:06.1 fra1 fails refused       # second round, no longer needed
  -> nothing
02:03 fra1 waits
  -> asks fra2 to confirm
02:05 time passes
02:05.1 fra2 passes 90ms
02:05.2 fra2 is silent
02:10 fra1 fails timeout
  -> round europe disputed
02:10.1 fra1 fails refused
  -> nothing
02:10.2 it is up since 00:00
