# Disputes that come from one place alone, where others could have looked too, put nobody into quarantine: of a monitor that
# is pinned to a region of two networks, nobody else has a word.
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
# Once one that is not pinned is down, it is the portal that two networks contradict.
00:07 wiki fra1 fails refused, portal passes, nyc1 fails refused
00:08 docs fra1 fails refused, portal passes, nyc1 fails refused
00:09 chat fra1 fails refused, portal passes, nyc1 fails refused
00:10 wiki nyc1 fails refused, portal passes, fra1 fails refused
00:11 docs nyc1 fails refused, portal passes, fra1 fails refused
  -> portal is quarantined: 5 of 5 results contradicted, 5 by fra1, 5 by nyc1
