# With two vantages, neither can be judged by the other alone: the operator is alerted of the contradiction, and
# both stay active.
mesh
place fra1 europe A
place portal europe B

00:01 shop fra1 fails refused, portal passes
00:02 blog fra1 fails refused, portal passes
00:03 mail fra1 fails refused, portal passes
00:04 wiki fra1 fails refused, portal passes
00:05 docs fra1 fails refused, portal passes
  -> fra1 is spared: 5 of 5 results contradicted, 5 by portal
