"""What FOUL asks of its clients: to keep outputs, to send deltas, to try radii."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from foul.client.compress import decode, encode
from foul.client.symmetric import pack, unpack
from foul.federation.federation import QuorumError, RoundLog
from foul.federation.messages import ClientInfo, Numbers, Tensors, added, join_groups, take_group
from foul.unlearning.foul.aside import aside, movable, pooled_moments
from foul.unlearning.foul.counts import Counts
from foul.unlearning.foul.messages import Message
from foul.unlearning.foul.options import FoulOptions
from foul.unlearning.foul.radius import POINTS, Trial, accuracies
from foul.unlearning.foul.replies import Replies
from foul.unlearning.foul.scope import frozen_of
from foul.unlearning.foul.steering import unseen_domains
from foul.unlearning.method import Case, MethodState
from foul.unlearning.request import ForgetRequest
from foul.unlearning.training import local_recipe


@dataclass
class Holding:
    """Who holds the frozen parts and their outputs, as far as this process knows."""

    clients: set[str] = field(default_factory=set)
    known: bool = False
    """Whether anybody was sent or asked anything yet. A method that another process resumes knows
    nothing."""


class Asking:
    """One round's questions, for the method whose stage this is."""

    def __init__(
        self,
        options: FoulOptions,
        case: Case,
        state: MethodState,
        holding: Holding,
        number: int,
        stage: str,
    ) -> None:
        self._options, self._case, self._state = options, case, state
        self._holding, self._number, self._stage = holding, number, stage

    def freeze(self) -> None:
        """Send the frozen parts to those who have not got them: all, or who was away before."""
        alone = self._options.departed or not self._options.matching
        asked = self._case.request.retain if alone else self._case.federation.clients
        if not self._holding.known:
            # Resumed by another process: do they still have what they were sent? From a scope that
            # is lost, a step would lead nowhere.
            self._holding.known = True
            lost = self._ask_freeze(asked, {})
            held = self._state.numbers.get("holding", ())
            self._state.numbers["holding"] = [client for client in held if client not in lost]
        missing = [client for client in asked if client.id not in self._holding.clients]
        if missing:
            frozen = frozen_of(self._options, self._case)
            self._ask_freeze(missing, encode(frozen, self._options.frozen_precision))

    def _ask_freeze(self, clients: Sequence[ClientInfo], tensors: Tensors) -> set[str]:
        """Answers who said that the scope of the round before is lost; not who said nothing."""
        lost: set[str] = set()
        settings: Numbers = {
            "frozen": self._state.numbers["frozen"],
            "session": self._state.numbers["session"],
            "splits": ["train", "validation"],
        }
        try:
            for reply in self._case.federation.ask(
                "freeze",
                clients,
                tensors,
                settings,
                round=self._number,
                stage=self._stage,
                log=RoundLog(),
            ):
                if reply.numbers["ready"]:
                    self._holding.clients.add(reply.client)
                if not reply.numbers.get("held", True):
                    lost.add(reply.client)
        except QuorumError:
            # Later it is the round itself that counts who is there.
            if self._number == 0:
                raise
        return lost

    def aside(self, scope: Tensors, spent: RoundLog) -> Tensors:
        """Matrices that lead forget clients where retain clients do not see them."""
        options, retain = self._options, self._case.request.retain
        sizes = {name: scope[name].flatten(1).shape[1] for name in movable(scope)}
        # In few bits, clients have kept the scope that they just trained.
        tensors = {} if options.stepwise else encode(scope, options.weights_precision)
        settings: Numbers = {
            "frozen": self._state.numbers["frozen"],
            "session": self._state.numbers["session"],
            "weights": list(sizes),
            "samples": min(options.probe, samples_tried(options, self._case.request)),
        }
        log = RoundLog()
        told = [
            (unpack(reply.tensors), reply.numbers["samples"])
            for reply in self._case.federation.ask(
                "inputs",
                retain,
                join_groups({"scope": tensors}),
                settings,
                round=self._number,
                stage=self._stage,
                log=log,
                like=pack({name: torch.zeros(size, size) for name, size in sizes.items()}),
            )
        ]
        spent.spent(log.costs)
        share = options.stepping_aside(self._state.numbers["fit"])
        moments = pooled_moments(told)
        return pack({name: aside(moment, share) for name, moment in moments.items()})

    def deltas(
        self, clients: Sequence[ClientInfo], sent: Message, loss: str, replies: Replies
    ) -> None:
        """Let clients train the scope from what is sent, and note what they answer."""
        log = RoundLog()
        forget = clients is self._case.request.forget
        # Who steps aside answers with what it moved; whoever holds a scope holds the matrices too.
        matrices = take_group(self._state.extra, "aside") if forget else {}
        changed = movable(sent.scope) if matrices else sent.scope
        holding = self._state.numbers.get("holding", ()) if sent.step else ()
        for reply in self._case.federation.ask(
            "unlearn",
            clients,
            sent.whole | join_groups({"aside": matrices}),
            self._settings(loss, forget),
            round=self._number,
            stage=self._stage,
            log=log,
            like=encode({name: sent.scope[name] for name in changed}, self._options.precision),
            instead=dict.fromkeys(holding, sent.step),
        ):
            told = decode(reply.tensors)
            # In the scope's order: sums over coordinates must not depend on how tensors travelled.
            replies.deltas[reply.client] = {
                name: told[name] if name in told else torch.zeros_like(tensor)
                for name, tensor in sent.scope.items()
            }
            replies.weights[reply.client] = reply.numbers["samples"]
            replies.scores[reply.client] = reply.numbers["scores"]
            replies.losses[reply.client] = reply.numbers["loss"]
        replies.log.absorb(log)

    def _settings(self, loss: str, forget: bool) -> Numbers:
        options, numbers = self._options, self._state.numbers
        pace = options.pace(numbers["fit"])
        return {
            "frozen": numbers["frozen"],
            "session": numbers["session"],
            "stepwise": options.stepwise,
            # How well training data is answered is asked of forget clients alone.
            "splits": ["train", "validation"] if forget else ["validation"],
            "loss": loss,
            "aside": forget and options.stepping_aside(numbers["fit"]) > 0,
            "level": 0.0 if loss == "cross_entropy" else self._level(),
            # As long as nothing is known of where to go, every answer counts.
            "aim": numbers.get("target", options.target or 0.0),
            "depth": pace.depth,
            "epochs": pace.epochs,
            "rate_epochs": pace.rate_epochs,
            "min_steps": options.min_steps,
            "rate": pace.rate * (options.steep_rate if loss == "unlikelihood" else 1.0),
            "rate_scale": self._rate_scale(),
            "precision": options.precision,
            "learning": local_recipe(self._case, options.batch_size, options.momentum),
            "seed": self._case.federation.seed,
        }

    def _level(self) -> float:
        estimated = bool(unseen_domains(self._case, self._options))
        return self._options.levelling(self._state.numbers["fit"], estimated)

    def _rate_scale(self) -> float:
        """Half a cosine from 1 to `final_rate` over the planned rounds."""
        fit = self._state.numbers["fit"]
        planned = self._options.planned(fit, self._case.learned_rounds)
        done = min(1.0, (self._number - 1) / max(1, planned - 1))
        final = self._options.final_rate
        return final + (1 - final) * 0.5 * (1 + math.cos(math.pi * done))

    def probe(self, middle: Tensors, way: Tensors, replies: Replies) -> list[float]:
        """Forget accuracy at each point of the way, as the forget clients tried it."""
        tensors = join_groups({"way": encode(way, self._options.precision)})
        if not (self._options.stepwise and replies.start):
            centre = added({name: self._state.tensors[name] for name in middle}, middle)
            tensors |= join_groups({"centre": encode(centre, self._options.weights_precision)})
        settings: Numbers = {
            "frozen": self._state.numbers["frozen"],
            "session": self._state.numbers["session"],
            "points": list(POINTS),
            "samples": samples_tried(self._options, self._case.request),
        }
        trials, log = [], RoundLog()
        for reply in self._case.federation.ask(
            "probe",
            self._case.request.forget,
            tensors,
            settings,
            round=self._number,
            stage=self._stage,
            log=log,
        ):
            tried = [Counts(hits, reply.numbers["samples"]) for hits in reply.numbers["correct"]]
            trials.append(Trial(tried, self._at_the_centre(reply.client, replies) or tried[0]))
        replies.log.spent(log.costs)
        return accuracies(trials)

    def _at_the_centre(self, client: str, replies: Replies) -> Counts | None:
        """How a forget client answers all of its training samples there, if that is where it
        started from; None if that is unknown."""
        told = replies.scores.get(client, {}).get("train")
        if told is None or not (self._options.calibrate and replies.start):
            return None
        return Counts(told["correct"], told["samples"])


def samples_tried(options: FoulOptions, request: ForgetRequest) -> int:
    """Samples with which each forget client tries a radius."""
    retained = sum(client.samples.get("train", 0) for client in request.retain)
    return options.tried(len(request.forget), retained)
