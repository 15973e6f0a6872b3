# One vantage checks in each interval for the whole mesh. A second network confirms, and the second round follows a
# minute later; hourly while down. No sweep, and no scope.
monitor domain every 6h
place fra1 europe A
place sin1 asia B

00:00 the monitor is made
  -> asks fra1 for a first round
00:01 fra1 passes
  -> first round europe passed
  -> UP since 00:00
10:00 sin1 fails expiring 20
  -> asks fra1 to confirm
10:01 fra1 fails expiring 20
  -> round asia failed
  -> asks nobody
11:00 time passes
  -> asks sin1 for a second round
11:01 sin1 fails expiring 20
  -> asks fra1 to confirm
11:02 fra1 fails expiring 20
  -> second round asia failed
  -> DOWN went-down since 10:00, because domain expires in 20 days
11:03 it is seen down from europe+north-america+south-america+africa+asia+oceania    # one verdict for the whole mesh
71:00 time passes
  -> asks sin1 to follow up
71:01 sin1 passes
  -> UP recovered since 71:00
