# The network of one vantage fails: its failures are disputed. No alert is sent.
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
10:00 it hangs sin1
  -> nothing
30:00 it is well everywhere
35:00 sin1 disconnects
  -> nothing
45:00 sin2 disconnects
  -> nothing
50:00 sin1 connects
  -> nothing
60:00 the world ends
