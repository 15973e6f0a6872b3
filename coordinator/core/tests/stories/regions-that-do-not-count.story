# uptimeRegions: only Europe counts. Failures in Asia cause no suspicion, no sweep and no outage.
monitor http every 60s uptime europe
place sin1 asia A
place sin2 asia B
place fra1 europe C
place fra2 europe A

00:00 everybody is up
01:00 sin1 fails refused
01:00.1 sin2 fails refused
  -> round asia failed
  -> asks nobody
02:00 sin1 fails refused
02:00.1 sin2 fails refused
  -> round asia failed
03:00 sin1 fails refused          # Asia is down, so it is not confirmed again
  -> round asia failed
  -> asks nobody
03:01 it is seen down from asia   # its results are still shown
03:01 it is seen up from europe
03:01 it is up since 00:00 last ok at 00:00
04:00 fra1 fails reset
04:00.1 fra2 fails reset
  -> round europe failed
  -> asks sin2 to sweep
04:00.2 sin2 fails refused
  -> sweep round asia failed
04:05 time passes
04:05.1 the asked fail reset
04:05.2 the asked fail reset
  -> second round europe failed
  -> DOWN went-down since 04:00, because connection closed by the host, 2 rounds as evidence
05:00 sin1 passes 80ms
  -> asks sin2 to confirm
05:00.1 sin2 passes 80ms
  -> round asia passed
  -> asks fra2 to sweep        # Europe may have recovered too
05:00.2 fra2 fails reset
  -> sweep round europe failed
06:00 fra1 passes 80ms
  -> asks fra2 to confirm
06:00.1 fra2 passes 80ms
  -> UP recovered since 06:00
