# A round that claims to begin in the future is dated now: the rounds after it do not count as late.
monitor http every 60s
place fra1 europe A
place fra2 europe B

00:00 everybody is up
01:00 fra1 passes 40ms began 01:50
  -> round europe passed
01:30 fra2 fails refused
  -> asks fra1 to confirm
