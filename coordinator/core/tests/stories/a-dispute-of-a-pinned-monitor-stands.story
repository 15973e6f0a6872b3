# If the region of a pinned monitor has two networks, a dispute between them remains undecided, even with vantages
# elsewhere.
monitor http every 60s pinned europe
place fra1 europe A
place fra2 europe B
place nyc1 north-america C

00:00 everybody is up
01:00 fra1 fails refused
  -> asks fra2 to confirm
01:00.1 fra2 passes 20ms
  -> round europe disputed
  -> asks nobody
