# A region without a resolver has no conclusive rounds, and one whose response or confirmation is slow has not seen
# the target up: neither is a witness because of what it saw before the outage.
monitor http every 60s
place fra1 europe A
place fra2 europe B
place nyc1 north-america C
place sin1 asia D

00:00 everybody is up
00:50 sin1 is unfit
01:00 fra1 fails refused
01:00.1 fra2 fails refused
  -> asks nyc1 to sweep
  -> asks sin1 to sweep
01:00.2 sin1 cannot look
  -> sweep round asia inconclusive
01:05 time passes
  -> asks fra1 for a second round
01:05.1 fra1 fails refused
  -> asks fra2 to confirm
01:05.2 fra2 fails refused
  -> second round europe failed
  -> DOWN went-down since 01:00
01:06 nyc1 fails refused
  -> asks fra1 to confirm
01:07 fra1 fails refused
  -> sweep round north-america failed
  -> asks nyc1 for a second round
  -> asks fra2 to confirm
01:07.1 nyc1 fails refused
01:07.2 fra2 fails refused
  -> second round north-america failed
01:30 sin1 passes 90ms
  -> round asia passed
  -> scope europe+north-america
02:30 sin1 cannot look           # it has seen the target up; this is inconclusive
  -> round asia inconclusive
03:30 sin1 fails refused
03:30.1 nyc1 cannot look
03:30.2 fra1 cannot look
03:30.3 fra2 cannot look
  -> round asia unconfirmed
  -> scope everywhere
