# A page that cannot be read: shown, status unchanged; after half an hour: unknown.
monitor component every 60s
place fra1 europe A
place sin1 asia B

00:00 the monitor is made
00:00.1 the asked pass
  -> UP since 00:00
01:00 fra1 cannot read the page
  -> round europe inconclusive
01:01 it is up since 00:00 last failed at 01:00 with the vendor's page can't be read
29:00 sin1 cannot read the page
30:00.1 time passes
  -> UNKNOWN since 30:00.1
