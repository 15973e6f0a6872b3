# A changed region list is judged at once, with an event.
monitor http every 60s uptime europe
place sin1 asia A
place sin2 asia B
place fra1 europe C

00:00 everybody is up
01:00 sin1 fails refused
01:00.1 sin2 fails refused
02:00 sin1 fails refused
02:00.1 sin2 fails refused
  -> round asia failed
02:30 fra1 passes 80ms
03:00 set uptime europe+asia
  -> DOWN went-down since 01:00 from asia, because connection refused
04:00 set uptime europe
  -> UP recovered since 04:00
