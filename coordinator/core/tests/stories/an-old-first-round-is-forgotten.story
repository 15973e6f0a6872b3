# Two failed rounds more than three intervals apart are not a run of two: the later one is a first one.
monitor http every 30s
place fra1 europe A
place fra2 europe B

00:00 everybody is up
01:00 fra1 fails refused
01:00.1 fra2 fails refused
  -> round europe failed
01:05 time passes
01:05.1 fra1 cannot look
  -> second round europe inconclusive
02:31 fra1 fails refused          # 91 seconds later
02:31.1 fra2 fails refused
  -> round europe failed
02:35 time passes
  -> asks fra1 for a second round
02:35.1 fra1 passes 50ms
