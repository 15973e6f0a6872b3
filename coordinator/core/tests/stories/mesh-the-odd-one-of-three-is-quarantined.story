# A vantage that passes every check is contradicted by two networks each time it confirms, so it is suspected, not
# the ones it contradicts. Ten results that agree with the others release it.
mesh
place fra1 europe A
place portal europe B
place fra3 europe C

00:01 shop fra1 fails refused, portal passes, fra3 fails refused
00:02 blog fra3 fails refused, portal passes, fra1 fails refused
00:03 mail fra1 fails refused, fra3 fails refused
00:04 mail fra3 fails refused, portal passes, fra1 fails refused
00:05 shop fra1 fails refused, portal passes, fra3 fails refused
00:06 blog fra1 fails refused, portal passes, fra3 fails refused
  -> portal is quarantined: 5 of 5 results contradicted, 5 by fra1, 5 by fra3
01:00 portal disagrees
02:00 portal agrees
02:10 portal agrees
02:20 portal agrees
05:59 time passes
06:00 time passes
  -> portal is released
