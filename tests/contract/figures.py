"""Counts what a run of the contract test has done, and fails if it was too little to mean anything."""

import collections
import json
import sys

CASES_MIN = 500

operations, cases, statuses = set(), 0, collections.Counter()
checks = collections.Counter()
for line in open(sys.argv[1], encoding="utf-8"):
    finished = json.loads(line).get("ScenarioFinished")
    if not finished:
        continue
    recorder = finished["recorder"]
    if finished["phase"] != "stateful":
        operations.add(recorder["label"])
    cases += len(recorder.get("cases", {}))
    for of_case in recorder.get("checks", {}).values():
        checks.update(check["name"] for check in of_case)
    for interaction in recorder.get("interactions", {}).values():
        if interaction.get("response"):
            statuses[interaction["response"]["status_code"]] += 1

answers = ", ".join(f"{count} x {status}" for status, count in sorted(statuses.items()))
print(f"contract: {len(operations)} operations, {cases} cases, {sum(checks.values())} checks of {len(checks)} kinds")
print(f"contract: answered with {answers}")
if cases < CASES_MIN or not any(status == 200 for status in statuses):
    sys.exit(f"contract: fewer than {CASES_MIN} cases, or none that went well")
