# The mesh has a second network, which is away: set to repeat or not, nobody else can confirm.
monitor http every 60s confirmation repeat
place fra1 europe A
place fra2 europe A
place nyc1 north-america B

00:00 everybody is up
00:30 nyc1 disconnects
01:00 fra1 fails refused
  -> round europe unconfirmed
  -> asks nobody
