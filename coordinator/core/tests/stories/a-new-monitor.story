# First rounds run at once in every region; regions whose vantages join later are checked as they join.
monitor http every 60s
place fra1 europe A
place nyc1 north-america B

00:00 the monitor is made
  -> asks fra1 for a first round
  -> asks nyc1 for a first round
00:00 it is unknown never checked
00:00.1 nyc1 passes 95ms
  -> first round north-america passed
  -> UP since 00:00
00:00.2 it is up since 00:00 last ok at 00:00.1 in 95ms
00:00.3 fra1 is silent
  -> asks nobody
