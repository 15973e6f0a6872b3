# One of three networks sees every check pass: an outage is still reported, and in time.
world http every 60s
place fra1 europe A
place nyc1 north-america B
place portal asia C

00:00 the world begins
  -> UP within 5s
00:30 it is well portal
02:00 it refuses A
02:00.1 it refuses B
  -> DOWN went-down from europe+north-america within 36s
04:00 it is well A
04:00.1 it is well B
  -> scope changes
  -> UP recovered within 36s
05:59 the world ends
