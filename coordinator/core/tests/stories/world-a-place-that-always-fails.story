# One of three networks sees everything fail, and any other is asked to confirm it: that is no outage.
world http every 60s
place fra1 europe A
place nyc1 north-america B
place broken asia C

00:00 the world begins
  -> UP within 5s
02:00 it refuses broken
  -> nothing
20:00 the world ends
