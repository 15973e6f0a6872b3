"""Parses a page's feeds and calendar with common readers.

    python feeds.py '{"page": URL, "incident": TITLE, "window": TITLE, "said": TEXT}'

Prints a line for each assertion that holds, and exits with status 1 at the first that does not.
"""

import json
import sys
import urllib.request
import xml.etree.ElementTree as xml

import feedparser
import icalendar

told = json.loads(sys.argv[1])


def holds(what, it, found=""):
    if not it:
        print(f"NOT SO: {what} {found!r}")
        sys.exit(1)
    print(f"holds: {what}")


def read(path):
    with urllib.request.urlopen(told["page"] + path) as answer:
        return answer.read(), answer.headers


for path, version in (
    ("/feed.atom", "atom10"), ("/history.atom", "atom10"), ("/feed/atom", "atom10"),
    ("/feed.rss", "rss20"), ("/history.rss", "rss20"), ("/feed/rss", "rss20"), ("/feed", "rss20"),
):
    body, headers = read(path)
    xml.fromstring(body)
    feed = feedparser.parse(body, response_headers={"content-type": headers["content-type"]})
    holds(f"{path} is well formed", feed.bozo == 0, feed.get("bozo_exception"))
    holds(f"{path} is {version}", feed.version == version, feed.version)
    titles = sorted(entry.title for entry in feed.entries)
    holds(f"{path} has both", titles == sorted([told["incident"], told["window"]]), titles)
    links = [entry.link for entry in feed.entries]
    holds(f"{path} links to them", all(link.startswith(told["page"] + "/incidents/inc_") for link in links), links)
    ids = [entry.id for entry in feed.entries]
    holds(f"{path} names them", len(set(ids)) == 2 and all(one.startswith("tag:parallax,2026:incident/inc_") for one in ids), ids)
    entry = next(entry for entry in feed.entries if entry.title == told["incident"])
    content = entry.content[0].value if version == "atom10" else entry.summary
    holds(f"{path} says what was said", told["said"] in content, content)
    holds(f"{path} says when", (entry.updated_parsed if version == "atom10" else entry.published_parsed) is not None)
    for entry in feed.entries:
        urllib.request.urlopen(entry.link).read()
holds("the feed has an author", feedparser.parse(read("/feed.atom")[0]).feed.author_detail.name == "Page under test")

body, headers = read("/maintenance.ics")
holds("a calendar is called one", headers["content-type"] == "text/calendar; charset=utf-8", headers["content-type"])
holds("its lines end and fold as they must", all(len(line) <= 75 for line in body.split(b"\r\n")) and b"\n" not in body.replace(b"\r\n", b""))
calendar = icalendar.Calendar.from_ical(body)
holds("it is published", str(calendar["METHOD"]) == "PUBLISH" and str(calendar["X-WR-CALNAME"]) == "Page under test maintenance")
holds("it is named", str(calendar["NAME"]) == "Page under test maintenance", calendar["NAME"])
holds("it says how long it is fresh", str(calendar["REFRESH-INTERVAL"]) == "PT1H")
(event,) = calendar.walk("VEVENT")
holds("nothing in it is broken", not event.errors and not calendar.errors, event.errors)
holds("it has the title", str(event["SUMMARY"]) == told["window"], event["SUMMARY"])
holds("it lasts an hour", (event["DTEND"].dt - event["DTSTART"].dt).total_seconds() == 3600)
holds("it is in UTC", event["DTSTART"].dt.utcoffset().total_seconds() == 0)
holds("it stands as it is", str(event["STATUS"]) == "CONFIRMED" and str(event["TRANSP"]) == "TRANSPARENT")
