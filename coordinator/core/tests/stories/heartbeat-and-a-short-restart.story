# A nightly job is late, and the coordinator restarted in the last tenth of its period: two seconds away do not move
# the deadline, and two seconds at the deadline move it by the grace and five minutes, never by a day.
monitor heartbeat every 1440m grace 60m
place fra1 europe A

00:00 the monitor is made
01:00 ping
  -> UP since 01:00
1431:00 the coordinator stops
1431:02 the coordinator starts
  -> nothing
1500:58 the coordinator stops
1501:00 the coordinator starts
  -> deadline moved to 1566:02
1566:02 time passes
  -> DOWN went-down since 1566:02
