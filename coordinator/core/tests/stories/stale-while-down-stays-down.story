# The vantages of a down region go silent: it stays down. It is no longer down when its last vantage is revoked.
monitor http every 60s
place sin1 asia A
place sin2 asia B
place fra1 europe C

00:00 everybody is up
01:00 sin1 fails refused
01:00.1 sin2 fails refused
  -> round asia failed
01:00.2 the asked pass
01:05 time passes
01:05.1 sin1 fails refused
01:05.2 sin2 fails refused
  -> second round asia failed
  -> DOWN went-down since 01:00 from asia
01:05.3 it is seen down from asia
01:05.3 it is seen up from europe
01:06 sin1 disconnects
01:06 sin2 disconnects
04:00 fra1 passes 50ms
08:00 fra1 passes 50ms
12:00 fra1 passes 50ms
12:01 it is down since 01:00 from asia
12:01 it is seen down from nowhere          # no vantage is left there
12:01 it is seen up from europe
13:00 sin1 is revoked
  -> nothing
13:10 sin2 is revoked
  -> UP recovered since 13:10, down since 01:00
