# The same at any phase of the interval; a second outage within ten minutes of a recovery has no recovery sweep.
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
10:07 it refuses everywhere
  -> DOWN went-down within 20s
22:13.5 it is well everywhere
  -> scope changes
  -> UP recovered within 12s
33:21 it refuses everywhere
  -> DOWN went-down within 20s
44:29.7 it is well everywhere
  -> scope changes
  -> UP recovered within 12s
55:38 it refuses everywhere
  -> DOWN went-down within 20s
66:46.3 it is well everywhere
  -> scope changes
  -> UP recovered within 12s
77:54 it refuses everywhere
  -> DOWN went-down within 20s
90:00 the world ends
