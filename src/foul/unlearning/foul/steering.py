"""Where a request is led, and when it is there: by evidence that a federation has."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from foul.errors import UserError
from foul.federation.federation import RoundLog
from foul.unlearning.foul.counts import Counts
from foul.unlearning.foul.evidence import Evidence
from foul.unlearning.foul.measured import after_leaving, pooled
from foul.unlearning.foul.options import FoulOptions
from foul.unlearning.foul.radius import aim_for
from foul.unlearning.foul.standin import StandIn, on_the_line
from foul.unlearning.method import Case, MethodState


def unseen_domains(case: Case, options: FoulOptions) -> list[str]:
    """Forgotten domains of which no retain client has held-out samples left, if that matters."""
    if not options.controlled or options.target is not None:
        return []
    known = {c.domain for c in case.request.retain if c.samples.get("validation", 0)}
    return sorted({client.domain for client in case.request.forget} - known)


class Steering:
    """One round's decisions. What is known from earlier rounds is in the state: `before` (the first
    round's evidence), `estimates` per domain, `target`, `aim`, `expected`."""

    def __init__(
        self,
        options: FoulOptions,
        case: Case,
        state: MethodState,
        evidence: Evidence,
        log: RoundLog,
    ) -> None:
        self._options, self._case, self._state = options, case, state
        self._evidence, self._log = evidence, log

    def aim(self, number: int, stage: str) -> dict[str, Any]:
        """Estimate the target, and set this round's aim on the way to it."""
        options, numbers = self._options, self._state.numbers
        told: dict[str, Any] = {}
        before = numbers["before"]["forget_train"]
        unseen = unseen_domains(self._case, options)
        if number == 1:
            # Before the first step: what an estimate that rises later has let go is gone.
            if unseen:
                told["standin"] = self._estimate(stage)
            numbers["estimates"] |= self._measured(unseen)
        target = self._target()
        if unseen and options.follows_held_out(numbers["fit"]):
            target = self._no_better_than_held_out(target)
        ramp = round(options.ramp * options.planned(numbers["fit"], self._case.learned_rounds))
        numbers["target"] = target
        numbers["aim"] = aim_for(before, min(target, before), number, ramp)
        return told | {"target": target, "aim": numbers["aim"]}

    def _measured(self, unseen: Sequence[str]) -> dict[str, float]:
        """The never-seen accuracy of forgotten domains of which others stay."""
        options, request = self._options, self._case.request
        told = {d: counts for d, counts in self._evidence.held_out().items() if counts.samples}
        shares = pooled(told) if options.pool else {d: told[d].share for d in told}
        domains = {client.domain for client in request.forget} - set(unseen)
        return {
            domain: after_leaving(shares[domain], self._kept(domain), options.curve)
            for domain in sorted(domains & shares.keys())
        }

    def _kept(self, domain: str) -> float:
        """The share of a domain's training samples that stays."""
        retain, forget = (
            sum(client.samples["train"] for client in clients if client.domain == domain)
            for clients in (self._case.request.retain, self._case.request.forget)
        )
        return max(1, retain) / max(1, retain + forget)

    def _target(self) -> float:
        """The chosen forget accuracy, else the mean of the domains' estimates.

        Raises:
            UserError: there is none: the aim would be where it began, and nothing forgotten.
        """
        if self._options.target is not None:
            return self._options.target
        estimates = self._state.numbers["estimates"]
        known = [c for c in self._case.request.forget if c.domain in estimates]
        if not known:
            domains = sorted({client.domain for client in self._case.request.forget})
            raise UserError(
                f"Nobody with held-out samples of {', '.join(domains)} answered: how well a model "
                "would do that never saw the forgotten data is unknown, and nothing was forgotten",
                "Ask again when they are back, or say what forget accuracy to aim for: target=0.5.",
            )
        return weighted_mean(
            [estimates[c.domain] for c in known], [c.samples["train"] for c in known]
        )

    def _no_better_than_held_out(self, target: float) -> float:
        """The estimate, or the forget clients' accuracy on their own held-out samples if that is
        lower by more than chance: who never saw their training samples knows these no better."""
        held_out = self._evidence.counts("forget", "validation")
        margin = self._options.chance * held_out.standard_error
        if held_out.samples and held_out.share + margin < target:
            return held_out.share
        return target

    def _estimate(self, stage: str) -> dict[str, float]:
        """Train and score a stand-in, and note what follows; answers its accuracies."""
        standin = StandIn(self._case, self._options, self._log)
        domains, retain = standin.scores(standin.trained(stage), stage)
        options, learned, classes = self._options, self._learned(), self._case.classes
        for domain, counts in domains.items():
            self._state.numbers["estimates"][domain] = on_the_line(
                counts, retain, learned, options.offset, options.slope, classes, self._limit(domain)
            )
        shares = {domain: counts.share for domain, counts in domains.items()}
        return {"retain": retain.share, **shares}

    def _limit(self, domain: str) -> float:
        """In logits, what no model is believed to have on a domain that it never saw: the learned
        model's answers on held-out samples of it, as its clients told, less a handicap."""
        told, handicap = self._case.scores.held_out, self._options.handicap
        known = sum(
            (
                Counts(round(told[client.id] * samples), samples)
                for client in self._case.request.forget
                if client.domain == domain
                and 0 <= told.get(client.id, math.nan) <= 1
                and (samples := client.samples.get("validation", 0))
            ),
            Counts(),
        )
        if handicap is None or not known.samples:
            return math.inf
        return known.logit - handicap

    def _learned(self) -> Counts:
        """The learned model's answers on the retain clients' held-out samples."""
        share = self._state.numbers["before"].get("retain_validation", 0.0)
        samples = sum(client.samples.get("validation", 0) for client in self._case.request.retain)
        return Counts(round(share * samples), samples)

    def spoiled(self) -> str:
        """Why the last step must be taken back: not steered, it cost retain clients too much."""
        if self._options.controlled or self._state.round == 0:
            return ""
        lost = self._lost()
        if lost <= self._options.delta:
            return ""
        return (
            f"the next step cost retain clients {lost:.3f} of validation accuracy, "
            f"more than {self._options.delta:.3f}"
        )

    def finished(self, planned: int) -> str:
        """Why this round was the last one, of so many planned; empty if it was not."""
        options, done, numbers = self._options, self._state.round, self._state.numbers
        if done < planned:
            return ""
        if not options.controlled:
            return f"all {planned} rounds done"
        lost = self._lost()
        behind = lost > options.chance * self._learned().standard_error
        limit = done >= options.rounds + options.extra
        if behind and not limit:
            return ""
        reached = f"forget accuracy {numbers['expected']:.3f}, target {numbers['target']:.3f}"
        after = f"the limit of {done} rounds" if limit else f"after {done} rounds"
        if lost > options.delta:
            return f"{after}; {reached}; retain clients lost {lost:.3f}"
        return f"{reached}, after {done} rounds"

    def _lost(self) -> float:
        """Validation accuracy that retain clients have less than with the learned model."""
        now = self._evidence.accuracy("retain", "validation")
        before = self._state.numbers["before"].get("retain_validation")
        return before - now if before is not None and now is not None else 0.0


def weighted_mean(values: Sequence[float], weights: Sequence[float]) -> float:
    """The mean with these weights; the plain one if all are 0."""
    return float(np.average(values, weights=weights if sum(weights) else None))
