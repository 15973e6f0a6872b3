# Two of five vantages fail every check. One is quarantined; for the other the operator is alerted, since more than
# a third would be in quarantine.
mesh
place fra1 europe A
place fra2 europe B
place nyc1 north-america C
place bad1 asia D
place bad2 asia E

00:01 shop bad1 fails refused, fra1 passes, fra2 passes
00:02 blog bad1 fails refused, fra1 passes, fra2 passes
00:03 mail bad1 fails refused, fra1 passes, nyc1 passes
00:04 wiki bad1 fails refused, fra1 passes, nyc1 passes
00:05 docs bad1 fails refused, fra1 passes, nyc1 passes
  -> bad1 is quarantined: 5 of 5 results contradicted, 5 by fra1, 3 by nyc1, 2 by fra2
00:11 shop bad2 fails refused, fra1 passes, fra2 passes
00:12 blog bad2 fails refused, fra1 passes, fra2 passes
00:13 mail bad2 fails refused, fra1 passes, fra2 passes
00:14 wiki bad2 fails refused, fra1 passes, fra2 passes
00:15 docs bad2 fails refused, fra1 passes, fra2 passes
  -> bad2 is spared: 5 of 5 results contradicted, 5 by fra1, 5 by fra2
00:16 chat bad2 fails refused, fra1 passes, fra2 passes
