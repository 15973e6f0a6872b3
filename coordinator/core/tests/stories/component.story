# Checked from one vantage, confirmed like any other. Degraded counts as slow; the vendor's text is the reason; no
# scope.
monitor component every 60s
place fra1 europe A
place sin1 asia B

00:00 the monitor is made
00:00.1 the asked pass
  -> UP since 00:00
01:00 fra1 passes degraded
  -> SLOW went-slow since 01:00
02:00 sin1 passes degraded
  -> round asia passed
03:00 fra1 passes
  -> UP back-to-normal since 03:00
04:00 sin1 fails vendor Partial outage: API
  -> asks fra1 to confirm
04:00.1 fra1 fails vendor Partial outage: API
  -> round asia failed
  -> asks nobody
04:05 time passes
04:05.1 the asked fail vendor Partial outage: API
04:05.2 the asked fail vendor Partial outage: API
  -> DOWN went-down since 04:00, because Partial outage: API
