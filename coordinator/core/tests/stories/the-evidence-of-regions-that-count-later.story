# Asia is down but does not count. Once it counts, the rounds that made it down are the evidence of the outage, even
# if it counted before and was announced.
monitor http every 60s uptime europe
place sin1 asia A
place sin2 asia B
place fra1 europe C

00:00 everybody is up
01:00 sin1 fails refused
01:00.1 sin2 fails refused
  -> round asia failed
02:00 sin1 fails reset
02:00.1 sin2 fails reset
  -> round asia failed
02:30 fra1 passes 80ms
03:00 sin1 fails refused
  -> round asia failed
03:10 set uptime all
  -> DOWN went-down since 01:00 from asia, was up, because connection refused, 2 rounds as evidence
03:20 set uptime europe
  -> UP recovered since 03:20
04:10 set uptime asia
  -> DOWN went-down since 01:00, was up, 2 rounds as evidence
05:00 sin1 passes 80ms
  -> asks sin2 to confirm
05:00.1 sin2 passes 80ms
  -> UP recovered since 05:00
