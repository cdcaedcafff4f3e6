#!/usr/bin/env python3
"""Fits the weights of routing (classifier.rs, continuity.rs) on the tuning part and on the public sets (public_sets.py), and says what
they would reach on a team that they were not fitted on: each team in turn is left out. Reads what the evaluation prints with
`--figures` of both; needs numpy.

    cat tuning.jsonl public.jsonl | fit.py
"""
import json
import math
import sys
from collections import Counter, defaultdict

import numpy as np

PENALTY = 0.002  # of large weights
TURN_PENALTY = 0.001
STEPS, RATE = 600, 0.05
GROUNDS = {"words": "WORDS", "vectors": "VECTORS", "english": "ENGLISH", "readInEnglish": "READ_IN_ENGLISH"}
OPENINGS = (None, "opening")


def read(lines):
    rows = []
    for line in lines:
        if line.startswith("["):
            way, team, (language, kind, expect, current, weighed) = json.loads(line)
            rows.append(dict(weighed, way=way, team=team, language=language, kind=kind, expect=expect, current=current))
    return rows


def features(row):
    """A vector for each member and one for nobody, in one space."""
    members, nobody = np.array(row["members"]), np.array(row["nobody"])
    below = np.concatenate([np.zeros(members.shape[1]), nobody])
    return np.vstack([np.hstack([members, np.zeros((len(members), len(nobody)))]), below])


def shares(weights, vectors):
    scores = vectors @ weights
    powers = np.exp(scores - scores.max())
    return powers / powers.sum()


def adam(size, gradient, positive=0):
    """Gradient descent; the first `positive` weights never fall below 0."""
    weights, first, second = np.zeros(size), np.zeros(size), np.zeros(size)
    for step in range(1, STEPS + 1):
        slope = gradient(weights)
        first = 0.9 * first + 0.1 * slope
        second = 0.999 * second + 0.001 * slope * slope
        weights = weights - RATE * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
        weights[:positive] = np.maximum(weights[:positive], 0)
    return weights


def fit_classifier(rows):
    """Multinomial logistic regression; nothing that speaks for a member may count against it."""
    most = max(len(row["members"]) for row in rows) + 1
    members = len(rows[0]["members"][0])
    data, right = [], []
    for row in rows:
        vectors = features(row)
        # Nobody stands last; places of small teams that are left over can never be chosen.
        padded = np.zeros((most, vectors.shape[1]))
        padded[: len(vectors) - 1], padded[-1] = vectors[:-1], vectors[-1]
        data.append(padded)
        right.append(most - 1 if row["expect"] is None else row["expect"])
    data, right = np.array(data), np.array(right)
    counts = Counter((row["way"], row["team"]) for row in rows)
    # Each team counts alike, however many messages it has: some public ones have thousands.
    weight = np.array([len(rows) / len(counts) / counts[row["way"], row["team"]] for row in rows])
    exists = np.array([[place < len(row["members"]) or place == most - 1 for place in range(most)] for row in rows])

    def gradient(weights):
        scores = np.where(exists, data @ weights, -1e9)
        powers = np.exp(scores - scores.max(axis=1, keepdims=True))
        pull = powers / powers.sum(axis=1, keepdims=True)
        pull[np.arange(len(right)), right] -= 1
        return np.einsum("np,npf->f", pull * weight[:, None], data) / weight.sum() + 2 * PENALTY * weights

    return adam(data.shape[2], gradient, members)


def turn_figures(row, share):
    """What continuity weighs, with the lead that follows from the shares."""
    present = share[row["current"]] if row["current"] is not None else share[-1]
    other = max(s for place, s in enumerate(share[:-1]) if place != row["current"])
    lead = max(-3.0, min(3.0, math.log(max(other, 1e-6) / max(present, 1e-6))))
    return [1.0, lead, other] + row["turn"][2:]


def is_answer(turn):
    """As in continuity.rs: what can be no change is not fitted on."""
    _, _, words, announces, agent_asked, asks, with_default = turn
    return words == 0 or (not announces and not asks and not with_default and words <= (3 if agent_asked else 2))


def fit_continuity(turns):
    figures, changed = np.array([figures for figures, _ in turns]), np.array([changed for _, changed in turns])

    def gradient(weights):
        chances = 1 / (1 + np.exp(-np.clip(figures @ weights, -30, 30)))
        penalty = 2 * TURN_PENALTY * weights
        penalty[0] = 0
        return figures.T @ (chances - changed) / len(changed) + penalty

    return adam(figures.shape[1], gradient)


def percent(part, whole):
    return f"{100 * part / whole:5.1f}" if whole else "    -"


def report(name, judged):
    fits = [j for j in judged if j["expect"] is not None]
    none = [j for j in judged if j["expect"] is None]
    right = sum(j["chosen"] == j["expect"] for j in judged)
    first = sum(j["first"] == j["expect"] for j in fits)
    lost = sum(j["chosen"] is None for j in fits)
    print(f"  {name:28} {len(judged):4}  right {percent(right, len(judged))}  right first {percent(first, len(fits))}"
          f"  good ones rejected {percent(lost, len(fits))}  nobody known {percent(sum(j['chosen'] is None for j in none), len(none))}")


def numbers(weights):
    return "[" + ", ".join(f"{w:.2f}" for w in weights) + "]"


def main():
    rows = read(sys.stdin)
    left_out = {}
    for ground, constant in GROUNDS.items():
        openings = [r for r in rows if r["ground"] == ground and r["kind"] in OPENINGS]
        if not openings:
            continue
        teams, judged = sorted({r["team"] for r in openings}), []
        for team in teams:
            weights = fit_classifier([r for r in openings if r["team"] != team]) if len(teams) > 1 else fit_classifier(openings)
            for row in (r for r in rows if r["ground"] == ground and r["team"] == team):
                share = shares(weights, features(row))
                left_out[id(row)] = share
                best = max(range(len(share) - 1), key=lambda i: share[i])
                if row["kind"] in OPENINGS:
                    judged.append(dict(row, first=best, chosen=best if share[best] >= share[-1] else None))
        print(f"{constant}: left out one team each time")
        for way in sorted({j["way"] for j in judged}):
            of_way = [j for j in judged if j["way"] == way]
            report(way, of_way)
            for key in ("language", "team"):
                for value in sorted({j[key] for j in of_way}):
                    report("  " + value, [j for j in of_way if j[key] == value])
        weights, members = fit_classifier(openings), len(openings[0]["members"][0])
        print(f"const {constant}: member: {numbers(weights[:members])}, nobody: {numbers(weights[members:])}")
    for way in sorted({r["way"] for r in rows}):
        turns = [r for r in rows if r["way"] == way and r["turn"] and not is_answer(r["turn"])]
        data = [(r["team"], turn_figures(r, left_out[id(r)]), float(r["kind"] == "change"), r["kind"]) for r in turns]
        chances = []
        for team in sorted({d[0] for d in data}):
            weights = fit_continuity([(f, c) for t, f, c, _ in data if t != team])
            chances += [(1 / (1 + math.exp(-float(np.dot(weights, f)))), k) for t, f, _, k in data if t == team]
        print(f"continuity, {way}: left out one team each time, of turns that are no plain answers")
        slots_all = sum(r["way"] == way and r["kind"] == "slot" for r in rows)
        changes_all = sum(r["way"] == way and r["kind"] == "change" for r in rows)
        for bound in (0.2, 0.3, 0.4, 0.5, 0.6, 0.7):
            by_kind = defaultdict(list)
            for chance, kind in chances:
                by_kind[kind].append(chance >= bound)
            moved = {kind: sum(seen) for kind, seen in by_kind.items()}
            print(f"  from {bound}: changes seen {percent(moved.get('change', 0), changes_all)}"
                  f"  slots moved {percent(moved.get('slot', 0), slots_all)}"
                  f"  others moved {percent(moved.get('follow-up', 0) + moved.get('digression', 0), len(by_kind['follow-up'] + by_kind['digression']))}")
        print("  const", numbers(fit_continuity([(f, c) for _, f, c, _ in data])))


main()
