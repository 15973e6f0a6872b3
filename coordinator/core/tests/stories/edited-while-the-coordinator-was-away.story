# The target is changed just before the coordinator is killed: the failure of the old target is not the first of
# two.
monitor http every 60s
place fra1 europe A
place fra2 europe B

00:00 everybody is up
01:00 fra1 fails refused
01:00.1 fra2 fails refused
  -> round europe failed
01:01 the coordinator stops
01:01.5 the target is changed
01:03 the coordinator starts
01:04 everybody connects
  -> asks fra1 for a first round
01:06 fra1 fails refused
01:06.1 fra2 fails refused
  -> first round europe failed
01:07 it is up since 00:00
