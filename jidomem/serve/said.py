"""What many routes take and give, in the words of /openapi.json."""

from __future__ import annotations

from jidomem.serve import wire

JSON = wire.JSON
OK = {200: "The answer."}
AT = {"min_position": "A version that has to be reached: read no older than this."}
AS_OF = {"as_of": "A moment: answer with what was recorded by then."}
MOMENTS = {**AS_OF, "valid_at": "A moment of the world: leave out what does not hold then."}
