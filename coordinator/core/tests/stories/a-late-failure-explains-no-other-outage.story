# A round of the outage that is over is no evidence of the next one.
monitor http every 60s
place fra1 europe A
place fra2 europe B
place nyc1 north-america C
place nyc2 north-america D

00:00 everybody is up
01:00 fra1 fails refused
01:00.1 fra2 fails refused
01:00.2 the asked pass 60ms
01:05 time passes
01:05.1 the asked fail refused
01:05.2 the asked fail refused
  -> DOWN went-down since 01:00 from europe
01:08 nyc1 waits
01:10 time passes
  -> asks nyc2 for a second round
  -> asks nyc1 to confirm
01:10 fra1 passes 50ms
  -> asks fra2 to confirm
01:10.1 fra2 passes 50ms
  -> UP recovered since 01:10, down since 01:00
01:15 nyc1 fails timeout
01:18 nyc2 fails timeout
  -> round north-america failed
  -> asks nobody                # a check is already running
01:18.1 nyc2 passes 60ms
  -> second round north-america passed
01:18.2 nyc1 is silent
05:00 fra1 fails refused
05:00.1 fra2 fails refused
05:00.2 the asked pass 60ms
05:05 time passes
05:05.1 the asked fail refused
05:05.2 the asked fail refused
  -> DOWN went-down since 05:00 from europe, because connection refused, 2 rounds as evidence
