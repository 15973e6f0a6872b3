"""Uses a client generated from the OpenAPI document: creates a monitor, reads it back, and receives an error.

Usage: generated_client.py FOLDER URL KEY PAGE, where FOLDER holds the generated package `parallax_client`.
Prints one JSON object with the results of the calls.
"""

import json
import sys

folder, url, key, page = sys.argv[1:]
sys.path.insert(0, folder)

import parallax_client  # noqa: E402 (generated into the folder)
from parallax_client.exceptions import NotFoundException  # noqa: E402

configuration = parallax_client.Configuration(host=url, access_token=key)
with parallax_client.ApiClient(configuration) as client:
    monitors = parallax_client.MonitorsApi(client)
    incidents = parallax_client.IncidentsApi(client)
    made = monitors.create_monitor(
        page, parallax_client.MonitorCreate(url="https://a.example", slow_threshold_ms=900)
    )
    listed = monitors.list_monitors(page)
    opened = incidents.create_incident(
        page, parallax_client.IncidentCreate(title="Slow", monitor_ids=[made.monitor.id], notify=False)
    )
    status = parallax_client.PagesApi(client).get_status(page)
    try:
        monitors.get_monitor(page, "mon_nothing")
        missing = None
    except NotFoundException as refusal:
        missing = refusal.status
    print(
        json.dumps(
            {
                "made": made.monitor.id,
                "listed": [monitor.id for monitor in listed.monitors],
                "slowThresholdMs": made.monitor.slow_threshold_ms,
                "affected": [monitor.id for monitor in opened.incident.monitors],
                "open": [incident.id for incident in status.incidents],
                "opened": opened.incident.id,
                "missing": missing,
            }
        )
    )
