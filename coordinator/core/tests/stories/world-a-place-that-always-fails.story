# One of three networks sees every check fail, and all others are asked to confirm it: no outage.
world http every 60s
place fra1 europe A
place nyc1 north-america B
place broken asia C

00:00 the world begins
  -> UP within 5s
02:00 it refuses broken
  -> nothing
20:00 the world ends
