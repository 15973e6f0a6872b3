# A domain that cannot be read: the last check gives the reason from the first round on, and the owner is notified
# once, after three rounds.
monitor domain every 6h
place fra1 europe A
place sin1 asia B

00:00 the monitor is made
  -> asks fra1 for a first round
00:01 fra1 cannot judge registry: its answer has no expiry date
  -> first round europe inconclusive
00:02 it is unknown last failed at 00:01 with registry: its answer has no expiry date
360:00 sin1 cannot judge registry: timed out connecting
  -> round asia inconclusive
361:00 sin1 cannot look    # own fault: neither shown nor counted
  -> round asia inconclusive
361:01 it is unknown last failed at 360:00 with registry: timed out connecting
720:00 fra1 cannot judge registry: its answer has no expiry date
  -> round europe inconclusive
  -> unjudged since 00:00: registry: its answer has no expiry date
1080:00 sin1 cannot judge registry: its answer has no expiry date
  -> round asia inconclusive
1440:00 fra1 passes
  -> UP since 1440:00
1800:00 sin1 cannot judge registry: it answers with status 500
2160:00 fra1 cannot judge registry: it answers with status 500
2160:01 it is up since 1440:00 last failed at 2160:00 with registry: it answers with status 500
2520:00 time passes
  -> UNKNOWN since 2520:00
2520:01 sin1 cannot judge registry: it answers with status 500    # reported within the last 30 days
  -> round asia inconclusive
2521:01 the target is changed
2521:02 sin1 cannot judge registry: it answers with status 404
2880:00 fra1 cannot judge registry: it answers with status 404
3240:00 sin1 cannot judge registry: it answers with status 404
  -> round asia inconclusive
  -> unjudged since 2521:01: registry: it answers with status 404
