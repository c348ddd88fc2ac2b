r"""What accuracy would a model have that never saw the forgotten domain?

Nobody knows without retraining. A stand-in answers: a small network, trained from scratch over the
retain clients alone. It is worse than the large model everywhere, but models that are better on
data they know are better on data they do not know, along a line in logits ("accuracy on the
line"). From the stand-in's forget accuracy :math:`f_s`, its held-out retain accuracy :math:`r_s`
and the learned model's :math:`r`:

.. math:: \lambda(\hat f) = \lambda(f_s) + a + m (\lambda(r) - \lambda(r_s)), \quad
          \lambda(p) = \log (p / (1 - p))

The line is flat and does not begin at 0: how much better a large model is on domains that it saw
says little about one that it did not see. The estimate is at least chance, one in so many classes:
a small network may mistake an unseen domain's classes for each other, but that is its own mistake,
and to aim below chance would be to forget so much that it shows. And it is at most what the learned
model, which did see the domain, has on held-out samples of it, less a handicap in logits.
"""

import math

from foul.client.compress import Precision, encode
from foul.config.schema import LearningConfig, ModelConfig, SupervisedConfig
from foul.federation.federation import RoundLog
from foul.federation.ledger import Cost
from foul.federation.messages import Tensors
from foul.learning.rounds import LearningState, learning_round
from foul.models import build_network, deployed_state
from foul.unlearning.foul.counts import Counts
from foul.unlearning.foul.options import FoulOptions
from foul.unlearning.method import Case

PRECISION: Precision = "bfloat16"


def on_the_line(
    forget: Counts,
    retain: Counts,
    learned: Counts,
    offset: float,
    slope: float,
    classes: int,
    limit: float = math.inf,
) -> float:
    """The estimate of the module's formula, up to a limit in logits; without held-out retain
    samples, from the stand-in's own forget accuracy."""
    gain = 0.0
    if retain.samples and learned.samples:
        gain = offset + slope * (learned.logit - retain.logit)
    return at_least_chance(min(forget.logit + gain, limit), classes)


def at_least_chance(logit: float, classes: int) -> float:
    """The accuracy of this logit, or one in so many classes."""
    return max(1 / classes, 1 / (1 + math.exp(-logit)))


def stand_in_model(options: FoulOptions) -> ModelConfig:
    """Its make: small, whatever the learned model is."""
    return ModelConfig(
        backbone="small", norm="group", width=options.standin_width, decoder_channels=4
    )


class StandIn:
    """The stand-in of a case: how it is made, trained and scored.

    What its tasks cost each client is added to `log`.
    """

    def __init__(self, case: Case, options: FoulOptions, log: RoundLog | None = None) -> None:
        self._case, self._options, self._log = case, options, log or RoundLog()
        self.model = stand_in_model(options)
        self._learning = LearningConfig(
            objective="supervised",
            rounds=options.standin_rounds,
            patience=0,
            server_momentum=0.7,
            batch_size=options.batch_size,
            supervised=SupervisedConfig(epochs=options.standin_epochs, rate=options.standin_rate),
        )

    def fresh(self) -> Tensors:
        """Its tensors before it learns."""
        case = self._case
        net = build_network(self.model, case.classes, case.image_size, case.federation.seed)
        return deployed_state(net.state_dict())

    def trained(self, stage: str) -> Tensors:
        """Its tensors after all of its rounds over the retain clients."""
        learning = LearningState(self.fresh())
        while not learning.finished(self._learning):
            record = learning_round(
                self._case.federation,
                self._learning,
                learning,
                self._case.request.retain,
                frozenset(),
                stage,
                self.model,
                PRECISION,
            )
            self._log.spent({client: Cost(**cost) for client, cost in record["costs"].items()})
        return learning.tensors

    def scores(self, model: Tensors, stage: str) -> tuple[dict[str, Counts], Counts]:
        """Counts per forgotten domain over all samples of its forget clients, and over the retain
        clients' held-out samples."""
        request = self._case.request
        domains: dict[str, Counts] = {}
        for client, counts in self._ask(model, stage, True).items():
            domain = next(c.domain for c in request.forget if c.id == client)
            domains[domain] = domains.get(domain, Counts()) + counts
        retain = self._ask(model, stage, False)
        return domains, sum(retain.values(), Counts())

    def _ask(self, model: Tensors, stage: str, forget: bool) -> dict[str, Counts]:
        splits = ["train", "validation"] if forget else ["validation"]
        request, log = self._case.request, RoundLog()
        counts = {
            reply.client: sum(
                (Counts(s["correct"], s["samples"]) for s in reply.numbers.values()), Counts()
            )
            for reply in self._case.federation.ask(
                "evaluate",
                request.forget if forget else request.retain,
                encode(model, PRECISION),
                {"splits": splits, "model": self.model.model_dump(mode="json")},
                round=self._options.standin_rounds,
                stage=stage,
                log=log,
            )
        }
        self._log.spent(log.costs)
        return counts
