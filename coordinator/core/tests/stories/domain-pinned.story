# A pinned domain is checked and confirmed from its region only.
monitor domain every 6h pinned asia
place fra1 europe A
place sin1 asia B
place sin2 asia C

00:00 the monitor is made
  -> asks sin1 for a first round
00:01 sin1 fails expiring 3
  -> asks sin2 to confirm
00:02 sin2 is silent
  -> first round asia unconfirmed
  -> asks nobody
