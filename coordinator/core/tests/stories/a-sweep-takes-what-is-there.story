# A region whose running or newest round began after the suspicion's first needs no other round. An older round may
# show the time before the outage: that region is checked again.
monitor http every 60s
place fra1 europe A
place fra2 europe B
place nyc1 north-america C
place sin1 asia D

00:00 everybody is up
00:59 sin1 passes 90ms
01:00 fra1 fails refused
  -> asks fra2 to confirm
01:00.2 nyc1 passes 90ms        # began after the suspicion's first round
01:00.4 fra2 fails refused
  -> round europe failed
  -> asks sin1 to sweep
01:00.5 sin1 fails refused
  -> asks nyc1 to confirm
01:00.6 nyc1 fails refused
  -> sweep round asia failed
  -> asks nobody
