# While a window covers the monitor its status is judged but not announced; an unchanged status at its end is not
# announced either.
monitor http every 60s
place fra1 europe A
place fra2 europe B

00:00 everybody is up
00:30 a window begins
01:00 fra1 fails refused
  -> asks fra2 to confirm
01:00.1 fra2 fails refused
01:05 time passes
  -> asks fra1 for a second round
01:05.1 fra1 fails refused
  -> asks fra2 to confirm
01:05.2 fra2 fails refused
  -> DOWN since 01:00, was up
02:00 fra2 passes 80ms
  -> UP since 02:00, was down
03:00 the window ends
  -> nothing
