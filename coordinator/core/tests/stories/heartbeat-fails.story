# A reported failure or exit code makes it down at once, without confirmation. Exit code 0 is success.
monitor heartbeat every 60m grace 5m
place fra1 europe A

00:00 the monitor is made
01:00 ping exit 0
  -> UP since 01:00
10:00 ping exit 3
  -> DOWN went-down since 10:00, because the job ended with exit code 3
10:01 it is down since 10:00 last failed at 10:00 with the job ended with exit code 3
20:00 ping fail
  -> nothing
30:00 ping
  -> UP recovered since 30:00
40:00 ping fail
  -> DOWN went-down since 40:00, because the job reported a failure
