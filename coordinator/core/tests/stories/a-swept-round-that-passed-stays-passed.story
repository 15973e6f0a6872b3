# A swept round that passed before its confirmation arrived has passed: a later failure on another network does not
# change that.
monitor http every 60s
place fra1 europe A
place fra2 europe B
place sin1 asia C
place sin2 asia D

00:00 everybody is up
01:03 fra1 waits
  -> asks fra2 to confirm
  -> asks sin2 to sweep
01:05 time passes
  -> asks fra1 for a second round
  -> asks fra2 to confirm
01:06.1 sin2 waits
  -> asks sin1 to confirm
01:06.5 sin2 passes 200ms
01:07 sin1 fails refused
01:08 fra1 fails timeout
  -> sweep round asia passed
