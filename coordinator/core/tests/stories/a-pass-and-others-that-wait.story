# Behind a black hole every response takes long. A vantage that reports its check as pending has the full time of a
# check, and a pass does not end an outage before that.
monitor http every 60s
place fra1 europe A
place fra2 europe B
place fra3 europe C

00:00 everybody is up
01:00 fra1 fails timeout
01:00.1 the asked fail timeout
01:05 time passes
01:05.1 the asked fail timeout
01:05.2 the asked fail timeout
  -> DOWN went-down since 01:00
02:00 fra2 passes 10ms
  -> asks fra1 to confirm
02:03.1 fra1 waits
  -> nothing
02:10.1 fra1 fails timeout
  -> asks fra3 to confirm
02:13.2 fra3 waits
  -> nothing
02:20.2 fra3 fails timeout
  -> round europe failed
02:21 it is down since 01:00
