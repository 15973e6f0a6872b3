"""Reference for recurrences: reads lines of `zone every first number`, prints each occurrence, using Python zoneinfo only."""

import calendar
import datetime as dt
import sys
import zoneinfo

UTC = dt.timezone.utc
EPOCH = dt.datetime(1970, 1, 1, tzinfo=UTC)


def date_of(first, every, number):
    if every == "weekly":
        return first + dt.timedelta(weeks=number)
    months = first.year * 12 + first.month - 1 + number
    year, month = divmod(months, 12)
    month += 1
    days = calendar.monthrange(year, month)[1]
    if every == "monthly":
        return dt.date(year, month, min(first.day, days))
    same = [day for day in range(1, days + 1) if dt.date(year, month, day).weekday() == first.weekday()]
    place = (first.day - 1) // 7
    return dt.date(year, month, same[-1] if place == 4 else same[place])


def moment(local, zone):
    found = local.replace(tzinfo=zone, fold=0).astimezone(UTC)
    if found.astimezone(zone).replace(tzinfo=None) == local:
        return found
    # A gap: the offset changes between these two, in whole minutes.
    before, after = found - dt.timedelta(days=1), found + dt.timedelta(days=1)
    while (after - before).total_seconds() > 1:
        middle = before + dt.timedelta(seconds=(after - before).total_seconds() // 2)
        if middle.astimezone(zone).replace(tzinfo=None) < local:
            before = middle
        else:
            after = middle
    return after


for line in sys.stdin:
    name, every, first, number = line.split()
    zone = zoneinfo.ZoneInfo(name)
    local = (EPOCH + dt.timedelta(milliseconds=int(first))).astimezone(zone).replace(tzinfo=None)
    date = date_of(local.date(), every, int(number))
    found = moment(dt.datetime.combine(date, local.time()), zone)
    print(int((found - EPOCH).total_seconds() * 1000))
