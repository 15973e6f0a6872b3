# Disputes by a single vantage, although others could have checked too, quarantine no one: a monitor pinned to a
# region with two networks has no third outcome.
mesh
place fra1 europe A
place portal europe B
place nyc1 north-america C

00:01 shop fra1 fails refused, portal passes
00:02 blog fra1 fails refused, portal passes
00:03 mail fra1 fails refused, portal passes
00:04 shop fra1 fails refused, portal passes
00:05 blog fra1 fails refused, portal passes
00:06 mail fra1 fails refused, portal passes
# Once a monitor that is not pinned is down, two networks contradict the portal.
00:07 wiki fra1 fails refused, portal passes, nyc1 fails refused
00:08 docs fra1 fails refused, portal passes, nyc1 fails refused
00:09 chat fra1 fails refused, portal passes, nyc1 fails refused
00:10 wiki nyc1 fails refused, portal passes, fra1 fails refused
00:11 docs nyc1 fails refused, portal passes, fra1 fails refused
  -> portal is quarantined: 5 of 5 results contradicted, 5 by fra1, 5 by nyc1
