# A period that was changed during the pause counts, and a restart keeps the deadline that the resumption set.
monitor heartbeat every 60m grace 5m
place fra1 europe A

00:00 the monitor is made
01:00 ping
  -> UP since 01:00
02:00 the monitor is paused
  -> UNKNOWN since 02:00
03:00 set every 120m
  -> nothing
10:00 the monitor is resumed
  -> nothing
20:00 the coordinator stops
20:10 the coordinator starts
135:00 time passes
  -> DOWN went-down since 135:00, because no ping by the deadline
