"""Corrects generated requests where the API description cannot express the constraint."""

import schemathesis
from schemathesis import GenerationMode

EVENT_ID = "Last-Event-ID"


def without_long_numbers(value):
    """Replaces whole numbers that 64 bits do not hold."""
    if isinstance(value, dict):
        return {name: without_long_numbers(item) for name, item in value.items()}
    if isinstance(value, list):
        return [without_long_numbers(item) for item in value]
    return 0 if isinstance(value, int) and not -(2**63) <= value < 2**64 else value


@schemathesis.hook
def before_call(context, case, kwargs):
    """Corrects requests that should be valid. Requests that should be refused stay unchanged."""
    if case.meta is None or case.meta.generation.mode != GenerationMode.POSITIVE:
        return
    # An event id has the form of a decimal number: Schemathesis 4.32 loses the fraction of a
    # generated "0.0".
    if case.headers and str(case.headers.get(EVENT_ID, "")).isdigit():
        case.headers[EVENT_ID] = f"{case.headers[EVENT_ID]}.0"
    # The only valid conversation id is derived from team and session, which no schema can express.
    if case.operation.definition.raw.get("operationId") == "chatWithTeam" and isinstance(case.body, dict):
        case.body.pop("conversationId", None)
    # A visitor secret must have been issued for this agent's page together with its visitor id,
    # which no schema can express. The integration suite covers both.
    if case.operation.definition.raw.get("operationId") == "createVisitorToken" and isinstance(case.body, dict):
        case.body.pop("visitorId", None)
        case.body.pop("visitorSecret", None)
    # A lead must have the fields of the agent's form, and the agent or team may have none. Files
    # must have been uploaded for the conversation.
    if isinstance(case.body, dict):
        case.body.pop("lead", None)
        case.body.pop("attachments", None)
    # Whole numbers in metadata that would be stored rounded are refused, at any depth.
    if isinstance(case.body, dict) and "metadata" in case.body:
        case.body["metadata"] = without_long_numbers(case.body["metadata"])
