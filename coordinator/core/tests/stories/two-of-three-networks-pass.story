# Neither a vantage that fails every check nor a problem of one network causes an outage: two others pass. From five
# minutes on the owner sees how long they have contradicted each other; a pass of its own network ends that.
monitor http every 60s
place broken europe A
place fra2 europe B
place fra3 europe C

00:00 everybody is up
01:00 broken fails refused
  -> asks fra2 to confirm
01:00.1 fra2 passes 20ms
  -> asks fra3 to confirm
01:00.2 fra3 passes 20ms
  -> round europe disputed
  -> asks nobody
03:00 broken fails refused
  -> asks fra2 to confirm
03:00.1 fra2 passes 20ms
  -> asks fra3 to confirm
03:00.2 fra3 passes 20ms
  -> round europe disputed
05:59 it is up since 00:00
06:00 it is disputed since 01:00
07:00 broken cannot look
  -> round europe inconclusive
07:00.1 it is disputed since 01:00
08:00 broken passes 30ms
  -> round europe passed
08:00.1 it is undisputed
