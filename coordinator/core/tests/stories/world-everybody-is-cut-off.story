# Every agent is disconnected: unknown, without an alert to customers; then they reconnect.
world http every 60s
place fra1 europe A
place fra2 europe B

00:00 the world begins
  -> UP within 5s
10:00 fra1 disconnects
10:00.1 fra2 disconnects
  -> UNKNOWN within 301s
20:00 fra1 connects
  -> UP within 61s
30:00 the world ends
