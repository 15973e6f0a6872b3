# The expiry date from the newest check is shown.
monitor certificate every 1h
place fra1 europe A
place fra2 europe B

00:00 everybody is up
10:00 fra1 passes expiring 9000:00
70:00 fra2 passes expiring 99000:00
71:00 it is expiring 99000:00
