# A failed round that waits for confirmation when the monitor is paused is stored as unconfirmed.
monitor http every 60s
place fra1 europe A
place fra2 europe B

00:00 everybody is up
01:00 fra1 fails refused
  -> asks fra2 to confirm
01:00.1 the monitor is paused
  -> round europe unconfirmed
  -> UNKNOWN since 01:00.1
  -> asks nobody
