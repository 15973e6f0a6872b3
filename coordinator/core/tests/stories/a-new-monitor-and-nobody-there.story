monitor http every 60s
place fra1 europe A

00:00 the monitor is made
  -> asks fra1 for a first round
00:01 fra1 is silent
00:02 fra1 disconnects
01:00 fra1 connects
  -> asks fra1 for a first round
01:00.1 fra1 passes 20ms
  -> first round europe passed
  -> UP since 01:00
