# A failed round that began more than three intervals ago does not start a run of two.
monitor http every 30s
place fra1 europe A
place fra2 europe B

00:00 everybody is up
02:35 fra1 fails refused began 01:00 ended 02:34
  -> asks fra2 to confirm
02:35.1 fra2 fails refused
  -> round europe failed
  -> asks nobody
03:00 fra2 fails refused
03:00.1 fra1 fails refused
  -> round europe failed
03:05 time passes
  -> asks fra2 for a second round
