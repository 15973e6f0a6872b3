# Down in Europe, the only counted region, which then cannot be checked because of the mesh, not the target. A later
# pass sends recovered; a failure would have sent nothing new.
monitor component every 60s
place fra1 europe A
place fra2 europe B

00:00 everybody is up
01:00 fra1 fails vendor Major outage
01:00.1 the asked fail vendor Major outage
01:05 time passes
01:05.1 the asked fail vendor Major outage
01:05.2 the asked fail vendor Major outage
  -> DOWN went-down since 01:00, because Major outage
10:00 fra1 cannot read the page
31:05.2 time passes
  -> UNKNOWN since 31:05.2, was down
32:00 fra1 fails vendor Major outage
32:00.1 the asked fail vendor Major outage
32:05 time passes
32:05.1 the asked fail vendor Major outage
32:05.2 the asked fail vendor Major outage
  -> DOWN since 01:00, was unknown
40:00 fra1 passes
  -> UP recovered since 40:00, after 2340.000s
