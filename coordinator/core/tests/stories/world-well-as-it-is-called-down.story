# A black hole that ends just as it is reported as down: rounds begun before fail after the first region has
# recovered. Their regions are checked again at once, so that it is up within 12 s here too.
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
10:00 it hangs everywhere
  -> DOWN went-down within 35s
10:30 it is well everywhere
  -> scope changes
  -> UP recovered within 12s
30:01 it hangs everywhere
  -> DOWN went-down within 35s
30:33 it is well everywhere
  -> scope changes
  -> UP recovered within 12s
50:02 it hangs everywhere
  -> DOWN went-down within 35s
50:36 it is well everywhere
  -> scope changes
  -> UP recovered within 12s
70:03 it hangs everywhere
  -> DOWN went-down within 35s
70:39 it is well everywhere
  -> scope changes
  -> UP recovered within 12s
90:04 it hangs everywhere
  -> DOWN went-down within 35s
90:42 it is well everywhere
  -> scope changes
  -> UP recovered within 12s
100:00 the world ends
