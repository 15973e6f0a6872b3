# Three intervals of ten minutes are half an hour.
monitor http every 10m
place fra1 europe A
place fra2 europe B

00:00 everybody is up
29:59 it is up since 00:00
30:00 time passes
  -> UNKNOWN since 30:00
