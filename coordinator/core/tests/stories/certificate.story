# After a failed round the next follows within a minute until the verdict, then every five minutes while down.
monitor certificate every 1h
place fra1 europe A
place fra2 europe B

00:00 everybody is up
10:00 fra1 fails expired
10:00.1 fra2 fails expired
  -> round europe failed
10:05 time passes
  -> asks fra1 for a second round
10:05.1 fra1 fails expired
  -> asks fra2 to confirm
10:05.2 fra2 is silent
  -> second round europe unconfirmed
11:05 time passes
  -> asks fra1 to follow up
11:05.1 fra1 fails expired
  -> asks fra2 to confirm
11:05.2 fra2 fails expired
  -> follow-up round europe failed
  -> DOWN went-down since 10:00, because certificate expired
16:05 time passes
  -> asks fra1 to follow up
16:05.1 fra1 fails expired
  -> follow-up round europe failed
  -> asks nobody
21:05 time passes
  -> asks fra2 to follow up
21:05.1 fra2 passes
  -> follow-up round europe passed
  -> UP recovered since 21:05
60:00 it is up since 21:05
