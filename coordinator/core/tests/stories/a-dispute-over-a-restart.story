# The coordinator stops while a probe request to a third network is open: it is sent again, and decides.
monitor http every 60s
place fra1 europe A
place portal europe B
place fra3 europe C

00:00 everybody is up
01:00 fra1 fails refused
  -> asks portal to confirm
01:00.1 portal passes 20ms
  -> asks fra3 to confirm
01:01 the coordinator stops
01:02 the coordinator starts
  -> nothing
01:02.5 everybody connects
  -> asks fra3 to confirm
01:02.6 fra3 fails refused
  -> round europe failed
