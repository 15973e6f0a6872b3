# A start and a log entry never move the deadline, and do not count as a first ping.
monitor heartbeat every 60m grace 5m
place fra1 europe A

00:00 the monitor is made
00:10 ping start
  -> nothing
00:20 ping log
  -> nothing
00:30 it is unknown
01:00 ping
  -> UP since 01:00
60:00 ping start
65:00 ping log
66:00 time passes
  -> DOWN went-down since 66:00
