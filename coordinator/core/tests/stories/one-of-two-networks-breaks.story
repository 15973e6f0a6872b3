# Two networks are enrolled, and one of them breaks: nothing can be confirmed any more. The owner sees in which
# regions it fails.
monitor http every 60s
place fra1 europe A
place fra2 europe B
place sin1 asia A
place sin2 asia B

00:00 everybody is up
00:20 fra2 disconnects
00:21 it is up since 00:00 last ok at 00:00
00:30 sin2 is unfit
00:31 it is unconfirmable last ok at 00:00
01:00 fra1 fails refused
  -> round europe unconfirmed   # an unfit host cannot confirm
01:01 it is seen unconfirmed from europe
01:30 sin1 fails refused
  -> round asia unconfirmed
01:31 it is seen unconfirmed from europe+asia
01:32 it is unconfirmable last failed at 01:30 with connection refused
02:00 fra1 cannot look           # inconclusive: the previous outcome remains
02:01 it is seen unconfirmed from europe+asia
02:10 sin2 is fit
02:30 sin1 fails refused
  -> asks sin2 to confirm
02:30.1 sin2 fails refused
  -> round asia failed
02:31 it is seen unconfirmed from europe
