# A failure is sent to at most three vantages on other networks for confirmation, near ones first; then it stays
# unconfirmed.
monitor http every 60s
place fra1 europe A
place fra2 europe B
place nyc1 north-america C
place sin1 asia D
place syd1 oceania E

00:00 everybody is up
01:00 fra1 fails refused
  -> asks fra2 to confirm
01:00.1 fra2 is silent
  -> asks syd1 to confirm
01:00.2 syd1 cannot look
  -> asks nyc1 to confirm
01:12.2 time passes           # no response for twelve seconds
  -> round europe unconfirmed
  -> asks nobody
01:13 nyc1 fails refused      # too late
  -> nothing
01:14 it is up since 00:00
