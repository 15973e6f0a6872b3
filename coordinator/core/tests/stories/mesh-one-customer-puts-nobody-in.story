# A customer makes three sites refuse one agent: two networks contradict it each time, but it stays active.
# Quarantine requires targets of three accounts.
mesh
place fra1 europe A
place fra2 europe B
place nyc1 north-america C

00:01 evil/a fra1 fails refused, fra2 passes, nyc1 passes
00:02 evil/b fra1 fails refused, fra2 passes, nyc1 passes
00:03 evil/c fra1 fails refused, nyc1 passes, fra2 passes
00:04 evil/a fra1 fails refused, fra2 passes, nyc1 passes
00:05 evil/b fra1 fails refused, fra2 passes, nyc1 passes
00:06 evil/c fra1 fails refused, nyc1 passes, fra2 passes
00:07 acme/shop fra1 fails refused, fra2 passes, nyc1 passes
00:08 acme/shop fra1 fails refused, fra2 passes, nyc1 passes
00:09 blogs/home fra1 fails refused, fra2 passes, nyc1 passes
  -> fra1 is quarantined: 9 of 9 results contradicted, 9 by fra2, 9 by nyc1
# Nor can they keep it in quarantine.
01:00 fra1 disagrees on evil/a
01:10 fra1 agrees
01:20 fra1 disagrees on evil/b
01:30 fra1 agrees
01:40 fra1 agrees
05:00 fra1 disagrees on evil/c
05:09 time passes
  -> fra1 is released
