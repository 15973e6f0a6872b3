# While a region is down, its late failures count as failed in history too; those from before the outage do not.
monitor http every 60s
place fra1 europe A
place fra2 europe B

00:00 everybody is up
01:00 fra1 fails refused
01:00.1 the asked fail refused
01:05 time passes
01:05.1 the asked fail refused
01:05.2 the asked fail refused
  -> second round europe failed
  -> DOWN went-down since 01:00
05:00 fra1 fails refused began 02:00
  -> round europe failed
05:01 fra2 fails refused began 00:40
  -> round europe unconfirmed
