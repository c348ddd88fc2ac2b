"""FOUL's rounds: ask for deltas, match them, try how far to go, step."""

import math
import time
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any, ClassVar
from uuid import uuid4

import numpy as np

from foul.client.compress import decode, encode
from foul.federation.ledger import Cost
from foul.federation.messages import Tensors, added, join_groups, key_of, take_group
from foul.matching import gram_flops, gram_matrix, match, weighted_sum
from foul.unlearning.foul.asking import Asking, Holding
from foul.unlearning.foul.evidence import Evidence
from foul.unlearning.foul.fit import fit_of
from foul.unlearning.foul.messages import message, message_from
from foul.unlearning.foul.options import FoulOptions
from foul.unlearning.foul.radius import POINTS, choose_radius, is_flat
from foul.unlearning.foul.replies import Replies
from foul.unlearning.foul.scope import frozen_of, scope_of
from foul.unlearning.foul.steering import Steering
from foul.unlearning.method import Case, Method, MethodState
from foul.unlearning.requirements import Requirements


class Foul(Method[FoulOptions]):
    """Match the clients' deltas of V on the server, so that the update agrees with retain clients
    and conflicts with forget clients, just as far as a model that never saw these would be.

    Only the scope changes; everything else is frozen and its outputs are computed once.
    """

    name: ClassVar[str] = "foul"
    version: ClassVar[int] = 2
    requirements: ClassVar[Requirements] = Requirements(
        forget_online=True, individual_updates=True, l2u=True
    )

    def __init__(self, options: FoulOptions) -> None:
        super().__init__(options)
        self._holding = Holding()

    @property
    def needs(self) -> Requirements:
        if not self.options.departed:
            return self.requirements
        return replace(self.requirements, forget_online=False, stored_deltas=True)

    def start(self, case: Case) -> MethodState:
        """Send the frozen parts once; clients keep their outputs."""
        state = MethodState(dict(case.learned))
        state.numbers = {
            # As it is sent: outputs of rounded parts are not those of exact ones.
            "frozen": key_of(encode(frozen_of(self.options, case), self.options.frozen_precision)),
            # What clients keep between rounds belongs to this attempt alone.
            "session": uuid4().hex,
            "estimates": {},
            "fit": fit_of(self.options, case.scores, case.request, case.classes),
        }
        self._holding = Holding(known=True)
        self._asking(case, state, 0).freeze()
        return state

    def planned(self, case: Case, state: MethodState) -> int:
        planned = self._planned(case, state)
        return max(planned, state.round + (not state.finished))

    def _planned(self, case: Case, state: MethodState) -> int:
        return self.options.planned(state.numbers["fit"], case.learned_rounds)

    def _asking(self, case: Case, state: MethodState, number: int) -> Asking:
        return Asking(self.options, case, state, self._holding, number, self.name)

    def step(self, case: Case, state: MethodState) -> dict[str, Any]:
        # A round that fails half way leaves the state as it was.
        draft = replace(
            state,
            tensors=dict(state.tensors),
            extra=dict(state.extra),
            numbers=deepcopy(state.numbers),
        )
        record = self._step(case, draft)
        vars(state).update(vars(draft))
        return record

    def _step(self, case: Case, state: MethodState) -> dict[str, Any]:
        began, number = time.perf_counter(), state.round + 1
        asking = self._asking(case, state, number)
        asking.freeze()
        # Who answers by chance loses log(classes).
        replies = Replies(self.options.fairness, math.log(case.classes))
        scope = scope_of(self.options, case, state.tensors)
        sent = message(self.options, scope, take_group(state.extra, "step"))
        asking.deltas(case.request.retain, sent, "cross_entropy", replies)
        momentum = self.options.pace(state.numbers["fit"]).momentum
        before = take_group(state.extra, "last")
        replies.push = {name: momentum * step for name, step in before.items()}
        # The retain clients' step of this round: a part of it is made again in the next one.
        last = self._centre(case, state, replies) if momentum else {}
        if self.options.matching and not self.options.departed:
            if number == 1 and self.options.stepping_aside(state.numbers["fit"]):
                state.extra |= join_groups({"aside": asking.aside(scope, replies.log)})
            if self.options.forget_from == "centre":
                start = added(scope, last or self._centre(case, state, replies))
                sent = message_from(self.options, take_group(state.extra, "start"), start)
                replies.start = sent.scope
            asking.deltas(case.request.forget, sent, self._forget_loss(state), replies)
        evidence = Evidence(replies.scores, case.request)
        losses = replies.mean_losses(case.request)
        steering = Steering(self.options, case, state, evidence, replies.log)
        if number == 1:
            state.numbers["before"] = evidence.to_dict()
        record: dict[str, Any] = {
            # Of the model that this round started from; forget clients may have started from the
            # centre, and then tell of that.
            "validation_accuracy": evidence.accuracy("retain", "validation"),
            **evidence.to_dict(),
            "losses": losses,
            "fit": state.numbers["fit"],
        }
        if self.options.controlled:
            record |= steering.aim(number, self.name)
        reason = steering.spoiled()
        if reason:
            # The evidence is about the model this round started from: the one before is kept.
            state.tensors |= take_group(state.extra, "before")
            state.extra = {}
        else:
            update, told = self._update(case, state, replies, asking)
            record |= told
            if not self.options.controlled:
                state.extra |= join_groups({"before": scope})
            if self.options.stepwise:
                # The step that clients will make is the one to make here.
                step = encode(update, "int8")
                update = decode(step)
                state.extra |= join_groups({"step": step, "start": replies.start})
                state.numbers["holding"] = sorted(replies.deltas)
            state.extra |= join_groups({"last": last})
            state.tensors |= added(scope, update)
        state.round = number
        state.finished = reason or steering.finished(self._planned(case, state))
        return record | {"seconds": time.perf_counter() - began, **replies.log.to_dict()}

    def _forget_loss(self, state: MethodState) -> str:
        """What forget clients descend."""
        forget = self.options.pace(state.numbers["fit"]).forget
        if forget == "negated":
            return "cross_entropy"
        if forget == "bounded" and state.numbers.get("flat"):
            return "unlikelihood"
        return forget

    def _update(
        self, case: Case, state: MethodState, replies: Replies, asking: Asking
    ) -> tuple[Tensors, dict[str, Any]]:
        """The step of this round, and what to note of it."""
        if self.options.departed:
            scope = scope_of(self.options, case, state.tensors)
            for client in case.request.forget:
                kept = case.deltas[client.id]
                replies.deltas[client.id] = {name: kept[name] for name in scope}
                replies.weights[client.id] = client.samples["train"]
        clients, rows, shares = replies.sorted()
        forget = np.array([client in case.request.forget_ids for client in clients])
        planned = self._planned(case, state)
        options = self.options.matching_options(state.numbers["fit"], planned)
        if state.numbers.get("flat"):
            options = replace(options, radius_of="larger_mean")
        gram = gram_matrix(rows).values
        centre = match(gram, forget, replace(options, kappa=0.0), shares)
        matching = match(gram, forget, options, shares) if forget.any() else centre
        self._record_flops(case, rows)
        told: dict[str, Any] = {
            "matching": {
                "gap": matching.relative_gap,
                "flag": matching.flag,
                "weights": dict(zip(clients, matching.weights.tolist(), strict=True)),
                "cosines": dict(zip(clients, matching.cosines.tolist(), strict=True)),
            }
        }
        rate = self.options.server_rate
        if not self.options.controlled:
            return pushed(weighted_sum(rate * matching.weights, rows), replies.push), told
        middle = pushed(weighted_sum(rate * centre.weights, rows), replies.push)
        if replies.start:
            middle = {name: start - state.tensors[name] for name, start in replies.start.items()}
        way = weighted_sum(rate * (matching.weights - centre.weights), rows)
        accuracies = asking.probe(middle, way, replies)
        aim, flat = state.numbers["aim"], state.numbers.get("flat", False)
        share, expected = choose_radius(POINTS, accuracies, aim, flat)
        state.numbers["expected"] = expected
        state.numbers["flat"] = flat or is_flat(accuracies, aim, self.options.flat)
        told |= {"radius": share * options.kappa, "tried": accuracies, "expected": expected}
        return {name: middle[name] + share * way[name] for name in middle}, told

    def _centre(self, case: Case, state: MethodState, replies: Replies) -> Tensors:
        """The step that the retain clients alone would make."""
        _, rows, shares = replies.sorted()
        self._record_flops(case, rows)
        options = replace(self.options.matching_options(state.numbers["fit"]), kappa=0.0)
        centre = match(gram_matrix(rows).values, np.zeros(len(rows), bool), options, shares)
        return pushed(weighted_sum(self.options.server_rate * centre.weights, rows), replies.push)

    def _record_flops(self, case: Case, rows: Sequence[Tensors]) -> None:
        """Products of all pairs, and the sums of the centre and of the way from it."""
        cost = Cost(flops_server=gram_flops(rows, sums=2))
        case.federation.ledger.record(self.name, cost)


def pushed(step: Tensors, push: Tensors) -> Tensors:
    """A step with the momentum of the last one, if there is any."""
    return added(step, push) if push else step
