# One network in the whole mesh, with a second one required: nothing is ever confirmed, and that is shown.
monitor http every 60s
place fra1 europe A
place nyc1 north-america A

00:00 everybody is up
00:30 it is up since 00:00 unconfirmable
01:00 fra1 fails refused
  -> round europe unconfirmed
  -> asks nobody
01:30 nyc1 fails refused
  -> round north-america unconfirmed
02:00 fra1 fails refused
  -> round europe unconfirmed
05:01 fra1 fails refused       # such rounds keep the region from going stale
05:02 nyc1 fails refused
08:00 it is up since 00:00
