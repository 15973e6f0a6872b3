# The mesh has a second network, which is disconnected: one network is left, so it repeats the check if that is
# enabled.
monitor http every 60s confirmation repeat
place fra1 europe A
place fra2 europe A
place nyc1 north-america B

00:00 everybody is up
00:30 nyc1 disconnects
01:00 fra1 fails refused
  -> asks nobody
01:05 time passes
  -> asks fra2 to confirm
01:05.1 fra2 fails refused
  -> round europe failed
  -> asks fra2 for a second round
01:05.2 fra2 fails refused
  -> asks nobody
01:10.2 time passes
  -> asks fra1 to confirm
01:10.3 fra1 fails refused
  -> second round europe failed
  -> DOWN went-down since 01:00
02:00 nyc1 connects
03:00 fra1 passes 80ms
  -> UP recovered since 03:00
04:00 fra1 fails refused         # the other network is connected and confirms again
  -> asks nyc1 to confirm
