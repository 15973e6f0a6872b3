# A ping that arrives just after the deadline ends the outage; it does not undo it.
monitor heartbeat every 60m grace 5m
place fra1 europe A

00:00 the monitor is made
01:00 ping
  -> UP since 01:00
66:00 time passes
  -> DOWN went-down since 66:00
66:00.1 ping
  -> UP recovered since 66:00.1, after 0.100s
