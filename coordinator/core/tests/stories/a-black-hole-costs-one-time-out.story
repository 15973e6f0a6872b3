# No response for three seconds: confirmation and sweep begin at once, so the failure is confirmed when it ends. The
# second round begins while the first is pending, and is confirmed from its start. The alert waits for the outcome
# of the other region.
monitor http every 60s
place fra1 europe A
place fra2 europe B
place nyc1 north-america C

00:00 everybody is up
01:03 fra1 waits
  -> asks fra2 to confirm
  -> asks nyc1 to sweep
01:05 time passes
  -> asks fra1 for a second round
  -> asks fra2 to confirm
01:06 fra2 waits
  -> nothing
01:06 nyc1 waits
  -> asks fra2 to confirm
01:10 fra1 fails timeout
  -> nothing
01:13 fra2 fails timeout
  -> round europe failed
  -> asks nobody
01:13.1 nyc1 fails timeout
  -> nothing
01:15 fra1 fails timeout
  -> nothing
01:15.1 fra2 fails timeout        # outcome of the second round's confirmation
  -> second round europe failed
01:16 fra2 fails timeout          # confirmation of North America's round
  -> sweep round north-america failed
  -> asks nyc1 for a second round
  -> asks fra1 to confirm
  -> DOWN went-down since 01:00, 3 rounds as evidence
