# From unknown it takes the same two failed rounds, and an alert is sent.
monitor http every 60s
place fra1 europe A
place fra2 europe B

00:00 the monitor is made
  -> asks fra1 for a first round
00:00.1 fra1 fails refused
  -> asks fra2 to confirm
00:00.2 fra2 fails refused
  -> first round europe failed
00:05 time passes
  -> asks fra1 for a second round
00:05.1 fra1 fails refused
  -> asks fra2 to confirm
00:05.2 fra2 fails refused
  -> second round europe failed
  -> DOWN went-down since 00:00, was unknown
