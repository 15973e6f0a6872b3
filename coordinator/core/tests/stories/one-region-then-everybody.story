# Refused in Europe and confirmed by a second network, then in every other region: one outage, announced once, with
# its whole scope. The second rounds begin together, five seconds after the first; the alert waits for all of them.
monitor http every 60s
place fra1 europe A
place fra2 europe B
place nyc1 north-america C
place sin1 asia D

00:00 everybody is up
01:00 fra1 fails refused
  -> asks fra2 to confirm
01:00.1 fra2 fails refused
  -> round europe failed
  -> asks nyc1 to sweep
  -> asks sin1 to sweep
01:00.2 nyc1 fails refused
  -> asks sin1 to confirm       # no other network in its region
01:00.3 sin1 fails refused
  -> asks nyc1 to confirm
01:00.4 sin1 fails refused
  -> sweep round north-america failed
01:00.5 nyc1 fails refused
  -> sweep round asia failed
01:05 time passes
  -> asks fra1 for a second round
  -> asks nyc1 for a second round
  -> asks sin1 for a second round
01:05.1 fra1 fails refused
  -> asks fra2 to confirm
01:05.2 fra2 fails refused
  -> second round europe failed
  -> DOWN went-down since 01:00, was up, because connection refused, 4 rounds as evidence
01:06 it is down since 01:00
