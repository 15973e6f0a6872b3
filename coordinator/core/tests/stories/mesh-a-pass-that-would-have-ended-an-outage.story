# A pass that would end an outage is confirmed and judged like a failure: of three, the odd one out is contradicted.
# A pass without other outcomes does not judge a vantage.
mesh
place fra1 europe A
place portal europe B
place fra3 europe C

00:01 shop portal passes, fra1 fails refused, fra3 fails refused
00:02 blog portal passes, fra3 fails refused, fra1 fails refused
00:03 mail portal passes
00:04 mail fra1 passes, fra3 passes
00:05 shop portal passes, fra1 fails refused, fra3 fails refused
00:06 mail portal passes, fra1 fails refused, fra3 fails refused
00:07 blog fra1 fails refused, portal passes, fra3 fails refused
  -> portal is quarantined: 5 of 5 results contradicted, 5 by fra1, 5 by fra3
