# Inconclusive rounds do not reset a run of two, and do not count as current: after five minutes of them the status
# is unknown.
monitor http every 60s
place fra1 europe A
place fra2 europe B

00:00 everybody is up
01:00 fra1 passes 40ms
02:00 fra1 cannot look
03:00 fra2 cannot look
04:00 fra1 cannot look
05:00 fra2 cannot look
05:59 fra1 cannot look
06:00 time passes
  -> UNKNOWN since 06:00, was up
07:00 fra1 passes 40ms
  -> UP since 07:00, was unknown
