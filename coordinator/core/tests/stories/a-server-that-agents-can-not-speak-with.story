# A server whose TLS the agents do not support is not down: the last check gives the reason, and after five minutes
# the status is unknown.
monitor http every 60s
place fra1 europe A
place fra2 europe B

00:00 everybody is up
01:00 fra1 cannot judge TLS: the server offers RSA key exchange alone
  -> round europe inconclusive
  -> asks nobody
01:01 it is up since 00:00 last failed at 01:00 with TLS: the server offers RSA key exchange alone
02:00 fra2 cannot look    # the vantage's own fault is not shown
02:01 it is up since 00:00 last failed at 01:00 with TLS: the server offers RSA key exchange alone
03:00 fra1 passes 40ms
03:01 it is up since 00:00 last ok at 03:00 in 40ms
