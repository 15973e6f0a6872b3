# A black hole, and a vantage that passes every check: the third network is requested while the first is still
# pending, so that the lying vantage costs no extra timeout. The early second round is confirmed the same way.
monitor http every 60s
place fra1 europe A
place portal europe B
place fra3 europe C

00:00 everybody is up
01:03 fra1 waits
  -> asks portal to confirm
01:03.1 portal passes 20ms
  -> asks fra3 to confirm
01:05 time passes
  -> asks fra3 for a second round
  -> asks portal to confirm
01:05.1 portal passes 20ms
  -> asks fra1 to confirm
01:06.2 fra3 waits
01:10 fra1 fails timeout
  -> nothing
01:13.1 fra3 fails timeout
  -> round europe failed
