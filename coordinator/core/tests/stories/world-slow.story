# Slow in Europe: announced once, and once when back to normal, while vantages take turns.
world http every 30s threshold 500
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
10:00 it answers in 900ms europe
  -> SLOW went-slow within 31s
20:00 it is well everywhere
  -> UP back-to-normal within 61s
25:00 it answers in 900ms asia
  -> nothing
30:00 it answers in 4000ms fra1
  -> SLOW went-slow within 61s
40:00 it is well everywhere
  -> UP back-to-normal within 61s
50:00 the world ends
