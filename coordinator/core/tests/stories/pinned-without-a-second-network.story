# Pinned to a region with one network: its outages cannot be confirmed, and that is shown.
monitor http every 60s pinned asia
place sin1 asia A
place fra1 europe B

00:00 everybody is up
00:01 it is up since 00:00 unconfirmable
01:00 sin1 fails refused
  -> round asia unconfirmed
02:00 sin1 fails refused
  -> round asia unconfirmed
02:01 it is up since 00:00
