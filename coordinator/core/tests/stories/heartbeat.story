# Unknown until the first ping; then up; down at the deadline, which is period and grace after the last ping; up
# with the next.
monitor heartbeat every 60m grace 5m
place fra1 europe A

00:00 the monitor is made
  -> nothing
30:00 it is unknown never checked
40:00 ping
  -> UP since 40:00, was unknown
95:00 ping
  -> nothing
160:00 time passes
  -> DOWN went-down since 160:00, because no ping by the deadline
200:00 it is down since 160:00 last ok at 95:00
201:00 ping
  -> UP recovered since 201:00, after 2460.000s, because no ping by the deadline
