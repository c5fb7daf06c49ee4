"""Positions: where a run over topics goes on whose checkpoint was rescaled or evolved.

The offsets that the stream before has read are in its checkpoint. The new one starts with them:
`kafka_changes(checkpoint=…)` gives them to Spark's source. Whether it did is checked, because a
stream that begins elsewhere would lose changes or have them twice.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from graphtide.errors import GraphtideError
from graphtide.spark.driver.options import read_fingerprint
from graphtide.spark.watermark import plan_nodes

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from pyspark.sql import DataFrame

    from graphtide.spark.driver.continued import Continued
    from graphtide.spark.files import Location


def known_start(checkpoint: Location) -> str | None:
    """The offsets, as JSON, with which the stream of a checkpoint starts; None if it is a first."""
    found = read_fingerprint(checkpoint)
    if found is None or found.continued is None:
        return None
    return json.dumps(found.continued.offset)


def reads_topics(changes: DataFrame) -> bool:
    """Whether a stream is one of Kafka's records, and nothing else."""
    sources = [node for node in plan_nodes(changes) if node.nodeName() == "StreamingRelationV2"]
    return bool(sources) and all(node.sourceName() == "kafka" for node in sources)


def starts_at(changes: DataFrame) -> Mapping[str, Any] | None:
    """The offsets with which a stream of Kafka's records starts; None if they are not said."""
    for node in plan_nodes(changes):
        if node.nodeName() == "StreamingRelationV2" and node.sourceName() == "kafka":
            text = node.extraOptions().get("startingOffsets")
            if text is not None and text.startswith("{"):
                offsets: Mapping[str, Any] = json.loads(text)
                return offsets
    return None


def check_start(changes: DataFrame, checkpoint: Location, before: Continued) -> None:
    """Check that a stream of records starts where the one before it stopped."""
    if starts_at(changes) != before.offset:
        raise GraphtideError(
            f"{checkpoint} goes on at the offsets {json.dumps(before.offset)}, and the DataFrame "
            "does not start there",
            hint=f'make it with kafka_changes(…, checkpoint="{checkpoint}")',
        )
