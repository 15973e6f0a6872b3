# Types that are not judged by region use a third network anywhere to decide a dispute.
monitor component every 60s
place fra1 europe A
place portal europe B
place nyc1 north-america C

00:00 everybody is up
01:00 fra1 fails vendor major outage
  -> asks portal to confirm
01:00.1 portal passes
  -> asks nyc1 to confirm
01:00.2 nyc1 fails vendor major outage
  -> round europe failed
