# A failure that arrives more than 15 seconds after it ended can no longer be confirmed.
monitor http every 60s
place fra1 europe A
place fra2 europe B

00:00 everybody is up
01:16 fra1 fails refused began 01:00
  -> round europe unconfirmed
  -> asks nobody
02:15 fra1 fails refused began 02:00
  -> asks fra2 to confirm
