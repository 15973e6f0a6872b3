# One of three networks in a region passes every check. The second round of a suspicion is run by a vantage that has
# seen the first fail: otherwise the lying vantage would end every suspicion in its turn.
monitor http every 60s
place fra1 europe A
place portal europe B
place fra3 europe C

00:00 everybody is up
01:00 fra1 fails refused
  -> asks portal to confirm
01:00.1 portal passes 20ms
  -> asks fra3 to confirm
01:00.2 fra3 fails refused
  -> round europe failed
01:05 time passes
  -> asks fra3 for a second round
01:05.1 fra3 passes 20ms
  -> second round europe passed
02:00 fra3 fails refused
  -> asks fra1 to confirm
02:00.1 fra1 fails refused
  -> round europe failed
02:05 time passes
  -> asks fra3 for a second round
02:05.1 fra3 passes 20ms
  -> second round europe passed
