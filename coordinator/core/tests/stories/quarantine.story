# A quarantined vantage runs no counted rounds and confirms nothing; its response to an open probe request is
# ignored.
monitor http every 60s
place fra1 europe A
place fra2 europe B
place nyc1 north-america C

00:00 everybody is up
01:00 fra1 is quarantined
01:05 fra1 fails refused
  -> nothing
01:10 fra1 passes 900ms
  -> nothing
02:00 fra2 fails refused          # Europe has no other available vantage
  -> asks nyc1 to confirm
02:00.1 nyc1 is quarantined
  -> nothing
02:00.2 nyc1 fails refused
  -> round europe unconfirmed
  -> asks nobody
03:00 fra1 is released
03:10 fra1 passes 40ms
  -> round europe passed
