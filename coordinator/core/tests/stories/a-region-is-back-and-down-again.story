# Down, up, and down again: two outages, each announced once.
monitor http every 60s
place fra1 europe A
place fra2 europe B

00:00 everybody is up
01:00 fra1 fails refused
01:00.1 the asked fail refused
01:05 time passes
01:05.1 the asked fail refused
01:05.2 the asked fail refused
  -> DOWN went-down since 01:00
02:00 fra2 passes 30ms
  -> UP recovered since 02:00, after 60.000s
03:00 fra1 fails reset
03:00.1 the asked fail reset
03:05 time passes
03:05.1 the asked fail reset
03:05.2 the asked fail reset
  -> DOWN went-down since 03:00, because connection closed by the host
