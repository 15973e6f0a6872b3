# If none of the counted regions has an enrolled vantage, every region with one counts. A disconnected one is
# enough.
monitor http every 60s uptime oceania
place fra1 europe A
place fra2 europe B

00:00 everybody is up
01:00 fra1 fails refused
01:00.1 the asked fail refused
01:05 time passes
01:05.1 the asked fail refused
01:05.2 the asked fail refused
  -> DOWN went-down since 01:00
02:00 syd1 joins oceania C
  -> UNKNOWN since 02:00
02:10 syd1 passes 10ms
  -> UP recovered since 02:10
