# Disconnected agents after a start make nothing faster: no alert is sent twice.
monitor http every 60s threshold 500
place fra1 europe A
place fra2 europe B

00:00 everybody is up
01:00 fra1 passes 900ms
  -> SLOW went-slow since 01:00
02:00 the coordinator stops
02:02 the coordinator starts
  -> nothing
02:04 fra2 connects
  -> nothing
02:06 fra1 connects
  -> nothing
03:00 fra1 passes 100ms
  -> UP back-to-normal since 03:00
