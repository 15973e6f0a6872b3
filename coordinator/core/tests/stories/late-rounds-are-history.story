# A round that began more than two minutes before it arrives, or before its region's newest, is history only and
# never changes the status.
monitor http every 60s threshold 100
place fra1 europe A
place fra2 europe B

00:00 everybody is up
03:01 fra1 fails refused began 01:00.9
  -> round europe unconfirmed
  -> asks nobody
03:02 fra1 passes 900ms began 01:01.9       # slow, but too late to count
  -> round europe passed
03:10 fra2 passes 50ms
  -> round europe passed
03:11 fra1 fails refused began 03:09
  -> round europe unconfirmed
  -> asks nobody
03:12 it is up since 00:00 last ok at 03:10 in 50ms
