# A job that does not report: intervals count from its deadline. Further failures do not restart them.
monitor heartbeat every 60m grace 5m repeat 30m
place fra1 europe A

00:00 the monitor is made
10:00 ping
  -> UP since 10:00
75:00 time passes
  -> DOWN went-down since 75:00
105:00 time passes
  -> DOWN still-down since 75:00, because no ping by the deadline
120:00 ping fail
  -> nothing
135:00 time passes
  -> DOWN still-down since 75:00
140:00 ping
  -> UP recovered since 140:00
150:00 ping exit 3
  -> DOWN went-down since 150:00
180:00 time passes
  -> DOWN still-down since 150:00, because the job ended with exit code 3
