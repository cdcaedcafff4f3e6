"""What the generator of requests cannot know, put right before a request is sent."""

import schemathesis
from schemathesis import GenerationMode

EVENT_ID = "Last-Event-ID"


@schemathesis.hook
def before_call(context, case, kwargs):
    """Mends requests that are meant to be valid; those that are meant to be refused stay as they are."""
    if case.meta is None or case.meta.generation.mode != GenerationMode.POSITIVE:
        return
    # An event's id has the form of a decimal number: Schemathesis 4.32 loses the fraction of a drawn "0.0" on the way.
    if case.headers and str(case.headers.get(EVENT_ID, "")).isdigit():
        case.headers[EVENT_ID] = f"{case.headers[EVENT_ID]}.0"
    # The one valid conversation follows from team and session: any other is refused, and no schema can say which.
    if case.operation.definition.raw.get("operationId") == "chatWithTeam" and isinstance(case.body, dict):
        case.body.pop("conversationId", None)
    # A visitor's secret is one that was given out to this agent's page, and the id beside it is that visitor's: no schema
    # can say which. The integration suite asks for those.
    if case.operation.definition.raw.get("operationId") == "createVisitorToken" and isinstance(case.body, dict):
        case.body.pop("visitorId", None)
        case.body.pop("visitorSecret", None)
