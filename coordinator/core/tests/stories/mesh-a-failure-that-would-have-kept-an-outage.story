# A vantage that fails every check contradicts each recovery: two others pass, so it is suspected.
mesh
place fra1 europe A
place broken europe B
place fra3 europe C

00:01 shop fra1 passes, broken fails refused, fra3 passes
00:02 blog fra3 passes, broken fails refused, fra1 passes
00:03 mail fra1 passes, broken fails refused, fra3 passes
00:04 shop fra1 passes, broken fails refused
00:05 shop fra3 passes, broken fails refused, fra1 passes
00:06 blog fra1 passes, broken fails refused, fra3 passes
  -> broken is quarantined: 5 of 5 results contradicted, 5 by fra1, 5 by fra3
