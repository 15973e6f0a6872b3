# Alternating between up and failing for less than two rounds: never an outage.
world http every 60s
place fra1 europe A
place fra2 europe B
place nyc1 north-america B
place nyc2 north-america C
place gru1 south-america A
place gru2 south-america C
place jnb1 africa A
place jnb2 africa B
place sin1 asia B
place sin2 asia C
place syd1 oceania A
place syd2 oceania C

00:00 the world begins
  -> UP within 5s
10:00 it refuses everywhere
10:04 it is well everywhere
  -> nothing
12:00 it refuses everywhere
12:04 it is well everywhere
  -> nothing
20:00 the world ends
