# However long the coordinator was away, the job has at most one period from its return.
monitor heartbeat every 10m grace 5m
place fra1 europe A

00:00 the monitor is made
01:00 ping
  -> UP since 01:00
02:00 the coordinator stops
200:00 the coordinator starts
  -> deadline moved to 210:00
210:00 time passes
  -> DOWN went-down since 210:00
