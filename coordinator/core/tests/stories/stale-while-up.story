# A region that is silent for three intervals (at least five minutes) has no status; the others decide alone.
monitor http every 60s
place fra1 europe A
place nyc1 north-america B

00:00 everybody is up
02:00 fra1 passes 40ms
04:00 fra1 passes 40ms
06:00 fra1 passes 40ms
08:00 nyc1 fails refused
08:00.1 fra1 fails refused
  -> round north-america failed
  -> asks fra1 to sweep
08:00.2 fra1 passes 40ms
  -> sweep round europe passed
08:05 time passes
08:05.1 nyc1 passes 90ms
  -> second round north-america passed
13:05.1 time passes       # last results: Europe 08:00.2, North America 08:05.1
  -> UNKNOWN since 13:05.1
