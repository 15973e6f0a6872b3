# A vendor's component. While the status is unknown, alerts are skipped; afterwards the outage continues.
monitor component every 60s repeat 10m
place fra1 europe A
place fra2 europe B

00:00 everybody is up
01:00 fra1 fails vendor Major outage
01:00.1 the asked fail vendor Major outage
01:05 time passes
01:05.1 the asked fail vendor Major outage
01:05.2 the asked fail vendor Major outage
  -> DOWN went-down since 01:00
11:00 time passes
  -> DOWN still-down since 01:00, because Major outage
21:00 time passes
  -> DOWN still-down since 01:00
22:00 fra1 cannot read the page
31:00 time passes
  -> DOWN still-down since 01:00
31:05.2 time passes
  -> UNKNOWN since 31:05.2, was down
42:00 fra1 fails vendor Major outage
42:00.1 the asked fail vendor Major outage
42:05 time passes
42:05.1 the asked fail vendor Major outage
42:05.2 the asked fail vendor Major outage
  -> DOWN since 01:00, was unknown
51:00 time passes
  -> DOWN still-down since 01:00
60:00 fra1 passes
  -> UP recovered since 60:00
