# Inconclusive rounds break no run of two; and they are no fresh rounds: five minutes of them and nothing is known.
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
