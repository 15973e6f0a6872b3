# A second network that passes every check (a captive portal, an intercepting proxy) cannot veto an outage: a third
# one is requested at once, and two of three decide.
monitor http every 60s
place fra1 europe A
place portal europe B
place fra3 europe C

00:00 everybody is up
01:00 fra1 fails refused
  -> asks portal to confirm
01:00.1 portal passes 20ms
  -> asks fra3 to confirm
01:00.2 fra3 fails refused
  -> round europe failed
  -> asks nobody
01:05 time passes
  -> asks fra3 for a second round
01:05.1 fra3 fails refused
  -> asks portal to confirm
01:05.2 portal passes 20ms
  -> asks fra1 to confirm
01:05.3 fra1 fails refused
  -> second round europe failed
  -> DOWN went-down since 01:00
