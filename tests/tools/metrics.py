"""Scrapes a coordinator's metrics in both formats, with the parsers of Prometheus' client library.

Usage: metrics.py URL
"""

import sys
import urllib.request

from prometheus_client.openmetrics import parser as open_metrics
from prometheus_client.parser import text_string_to_metric_families

OPEN = "application/openmetrics-text; version=1.0.0"


def scrape(url: str, accept: str | None) -> tuple[str, str]:
    """Returns the media type and the text of one scrape."""
    request = urllib.request.Request(url, headers={"Accept": accept} if accept else {})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return answer.headers["Content-Type"], answer.read().decode()


def families(parsed) -> dict[str, tuple[str, list[str]]]:
    """Returns each family's type and the names of its samples."""
    found = {}
    for family in parsed:
        assert family.documentation, f"{family.name} has no help"
        assert family.name not in found, f"{family.name} stands twice"
        found[family.name] = (family.type, sorted({sample.name for sample in family.samples}))
    return found


def main(url: str) -> None:
    """Scrapes both formats and compares them."""
    for accept in [None, "*/*", "text/plain;version=0.0.4"]:
        media, text = scrape(url, accept)
        assert media.startswith("text/plain; version=0.0.4"), (accept, media)
    assert "# EOF" not in text and "# UNIT" not in text, text
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert (kind == "counter") == name.endswith("_total"), line
    classic = families(text_string_to_metric_families(text))
    media, text = scrape(url, OPEN)
    assert media.startswith("application/openmetrics-text; version=1.0.0"), media
    strict = families(open_metrics.text_string_to_metric_families(text))
    assert classic == strict, (classic, strict)
    assert len(strict) > 20 and {"counter", "gauge", "histogram"} == {kind for kind, _ in strict.values()}
    print("both formats are read alike")


main(*sys.argv[1:])
