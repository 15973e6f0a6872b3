monitor http every 60s
place fra1 europe A
place fra2 europe B

00:00 everybody is up
02:00 the coordinator stops
30:00 the coordinator starts
30:01 everybody connects
30:02 it is up since 00:00
35:00 time passes              # five minutes after the start
  -> UNKNOWN since 35:00
