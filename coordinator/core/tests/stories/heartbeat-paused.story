# A pause drops the deadline. From the resumption on, the next ping has a period and the grace; a missing one is
# announced, also if the job has not pinged since.
monitor heartbeat every 60m grace 5m
place fra1 europe A

00:00 the monitor is made
01:00 ping
  -> UP since 01:00
10:00 the monitor is paused
  -> UNKNOWN since 10:00
20:00 ping fail
  -> nothing
90:00 the monitor is resumed
  -> nothing
91:00 ping
  -> UP since 91:00
100:00 the monitor is paused
  -> UNKNOWN since 100:00
110:00 the monitor is resumed
  -> nothing
120:00 the monitor is paused
  -> nothing
130:00 the monitor is resumed
  -> nothing
195:00 time passes
  -> DOWN went-down since 195:00, was unknown, because no ping by the deadline
196:00 ping
  -> UP recovered since 196:00, after 60.000s, because no ping by the deadline
