"""What a method will take to serve a request: arithmetic on what learning took."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from foul.config.schema import ModelConfig
from foul.federation.ledger import Cost
from foul.federation.messages import ClientInfo
from foul.models import DEPLOYED, build_network, part_of
from foul.models.disentangled import Encoder
from foul.unlearning.controls import Continue, Retrain
from foul.unlearning.fats import Fats
from foul.unlearning.fedrecovery import FedRecovery
from foul.unlearning.ffmu import Ffmu, FfmuAdapted
from foul.unlearning.foul import Foul
from foul.unlearning.foul.aside import movable
from foul.unlearning.foul.asking import samples_tried
from foul.unlearning.foul.fit import fit_of
from foul.unlearning.foul.options import Fit, FoulOptions
from foul.unlearning.foul.radius import POINTS
from foul.unlearning.foul.scope import UNUSED, in_scope, square_convolutions
from foul.unlearning.foul.standin import stand_in_model
from foul.unlearning.method import LearnedScores, Method
from foul.unlearning.not_ import NoT
from foul.unlearning.request import ForgetRequest

TRAINING = 3
"""Forward passes that a step of training is worth: one forward, two backward."""


@dataclass(frozen=True)
class Estimate:
    """Expected cost of serving a request with a method."""

    rounds: int
    bytes: int
    flops: int
    seconds: float
    """Of client work."""
    minutes: float
    """On the clock."""
    disk: int
    within: float
    """Bytes and FLOPs are expected within this factor of the truth."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Network:
    """Sizes and FLOPs of a network, measured on one image."""

    deployed: int
    """Numbers in the deployed parts."""
    parameters: Mapping[str, Tensor]
    """Of the deployed parts; shapes without values."""
    frozen_flops: int
    """Of E and K, for one image."""
    scope_flops: int
    """Of V and the head."""
    layer_flops: Mapping[str, int]
    """Of V's convolutions and of the head, by their weights."""
    features: int
    """Numbers that E and K put out for one image."""
    classes: int
    image_size: int

    @property
    def flops(self) -> int:
        return self.frozen_flops + self.scope_flops

    @property
    def square_flops(self) -> int:
        """Of V's convolutions that FOUL may leave still; a step that does spares so many."""
        return sum(self.layer_flops[name] for name in square_convolutions(self.parameters))

    @classmethod
    def of(cls, model: ModelConfig, classes: int, image_size: int) -> "Network":
        """The network that this configuration describes."""
        net = build_network(model, classes, image_size, seed=0).eval()
        image = torch.zeros(1, 3, image_size, image_size)
        with torch.no_grad(), FlopCounterMode(display=False) as frozen:
            extracted = net.E(image)
            z_k = net.K(extracted)
        with torch.no_grad(), FlopCounterMode(display=False) as scope:
            net.joint_logits(z_k, net.V(extracted))
        by_module = scope.get_flop_counts()
        layers = {"head.weight": 2 * net.head.weight.numel()}
        parameters = {n: p.detach().to("meta") for n, p in net.named_parameters()}
        for name, parameter in parameters.items():
            if part_of(name) == "V" and parameter.ndim == 4 and not name.startswith(UNUSED):
                layers[name] = sum(by_module[_counted(name)].values())
        return cls(
            sum(tensor.numel() for tensor in net.part_state(DEPLOYED).values()),
            {name: p for name, p in parameters.items() if part_of(name) in DEPLOYED},
            frozen.get_total_flops(),
            scope.get_total_flops(),
            layers,
            extracted.numel() + z_k.numel(),
            classes,
            image_size,
        )


class Estimator:
    """Estimates for one request."""

    def __init__(
        self,
        basis: dict[str, Any],
        network: Network,
        request: ForgetRequest,
        learned_rounds: int,
        scores: LearnedScores | None = None,
    ) -> None:
        """`scores` are those of the model in service."""
        self._basis, self._network, self._request = basis, network, request
        self._learned_rounds = learned_rounds
        self._scores = scores or LearnedScores()
        costs = basis["clients"].values()
        work = sum(cost["seconds"] for cost in costs)
        flops = sum(cost["flops_client"] for cost in costs)
        self._speed = flops / work if work else 1e9
        together = basis["clients_per_round"] * work / max(1, len(basis["clients"]))
        self._side_by_side = max(1.0, together / max(1e-9, basis["wall_seconds"]))

    def estimate(self, method: Method[Any]) -> Estimate:
        """What this method is expected to take."""
        if isinstance(method, FedRecovery):
            return self._told(0, Cost(), 0, 1.0)
        rounds = getattr(method.options, "rounds", 0) or self._learned_rounds
        if isinstance(method, Foul):
            return self._foul(method)
        if isinstance(method, Retrain | Continue | NoT):
            return self._told(rounds, self._learning(rounds, self._request.retain), 0, 1.5)
        if isinstance(method, Fats):
            return self._fats(method)
        if isinstance(method, Ffmu | FfmuAdapted):
            return self._own_learning(method, rounds)
        return self._published(method, rounds)

    def _learning(self, rounds: int, clients: Sequence[ClientInfo]) -> Cost:
        """Rounds like those of the learning stage."""
        known = self._basis["clients"]
        costs = [known[client.id] for client in clients if client.id in known]
        share = float(self._basis["clients_per_round"]) / max(1, len(known))
        scale = rounds * min(1.0, share) * len(clients) / max(1, len(costs))

        def total(key: str) -> float:
            return scale * float(sum(cost[key] for cost in costs))

        return Cost(
            int(total("bytes_down")),
            int(total("bytes_up")),
            int(total("flops_client")),
            int(rounds * self._basis["flops_server"]),
            total("seconds"),
        )

    def _training(
        self, rounds: float, clients: Sequence[ClientInfo], epochs: float, copies: int = 1
    ) -> Cost:
        """Rounds of local training of the deployed network; `copies` of it are sent down."""
        size = 4 * self._network.deployed
        samples = sum(client.samples["train"] for client in clients)
        flops = int(rounds * epochs * samples * TRAINING * self._network.flops)
        return Cost(
            int(rounds * len(clients) * size * copies),
            int(rounds * len(clients) * size),
            flops,
            int(rounds * 2 * self._network.deployed * (len(clients) + 1)),
            flops / self._speed,
        )

    def _published(self, method: Method[Any], rounds: int) -> Estimate:
        """Methods that train the whole network: everybody in some rounds, else retain clients."""
        options, request = method.options, self._request
        epochs = getattr(options, "epochs", 1.0)
        together = getattr(options, "unlearning_rounds", 1)
        cost = self._training(rounds, request.retain, epochs)
        if method.name == "mode":
            cost += self._training(rounds, request.forget, epochs, copies=2)
            cost += self._learning(options.degradation_rounds, request.retain)
        elif method.name == "fused":
            everyone = (*request.retain, *request.forget)
            cost = self._training(1, everyone, epochs)
            cost += self._training(1, request.retain, epochs * (rounds - 1))
        elif method.needs.forget_online:
            cost += self._training(together, request.forget, epochs)
        return self._told(rounds, cost, 0, 3.0)

    def _own_learning(self, method: Method[Any], rounds: int) -> Estimate:
        """Its own learning stage over everybody, then its rounds."""
        everyone = (*self._request.retain, *self._request.forget)
        epochs = getattr(method.options, "epochs", 1.0)
        cost = self._training(self._learned_rounds, everyone, epochs)
        again = 0 if isinstance(method, Ffmu) else rounds
        cost += self._training(again, self._request.retain, epochs)
        return self._told(self._learned_rounds + again, cost, 0, 5.0)

    def _fats(self, method: Fats) -> Estimate:
        """Rounds over a few draws: all of them to learn, about all of them again."""
        options, rounds = method.options, 2 * self._learned_rounds
        everyone = (*self._request.retain, *self._request.forget)
        drawn = len(everyone) * (1 - (1 - 1 / len(everyone)) ** options.draws)
        samples = sum(min(options.batch_size, _train(client)) for client in everyone)
        mean = options.steps * samples / len(everyone)
        network = self._network
        size = int(rounds * drawn * 4 * network.deployed)
        flops = int(rounds * drawn * mean * TRAINING * network.flops)
        return self._told(rounds, Cost(size, size, flops, 0, flops / self._speed), 0, 3.0)

    def _foul(self, method: Foul) -> Estimate:
        """Frozen parts once, then rounds of V and the head in few bits."""
        options, network, request = method.options, self._network, self._request
        fit = fit_of(options, self._scores, self._request, self._network.classes)
        rounds = options.planned(fit, self._learned_rounds)
        departed = options.departed or not options.matching
        asked = request.retain if departed else (*request.retain, *request.forget)
        wide, narrow = (4, 4) if options.precision == "float32" else (2, 2)
        if options.precision == "int8":
            narrow = 1
        tensors = in_scope(options, network.parameters)
        scope = sum(tensor.numel() for tensor in tensors.values())
        # A step is one pass forward and two backward; what stays still has no use for one of them.
        spared = network.square_flops if options.still == "square" else 0
        step_flops = TRAINING * network.scope_flops - spared
        down = len(asked) * wide * (network.deployed - scope)
        seen = sum(c.samples["train"] + c.samples["validation"] for c in asked)
        flops = seen * network.frozen_flops
        steps = _trained(options, fit, asked)
        held = sum(client.samples["validation"] for client in asked)
        # Weights in the first round, and steps in the others, if they are shorter.
        later = narrow if options.stepwise else wide
        down += len(asked) * (wide + (rounds - 1) * later) * scope
        up = rounds * len(asked) * narrow * scope
        flops += int(rounds * (steps * step_flops + held * network.scope_flops))
        if not departed:
            each = samples_tried(options, request)
            tried = sum(min(each, _train(client)) for client in request.forget)
            own = sum(_train(client) for client in request.forget)
            centre = 0 if options.stepwise and options.forget_from == "centre" else wide
            down += rounds * len(request.forget) * (centre + narrow) * scope
            flops += int(rounds * (len(POINTS) * tried + own) * network.scope_flops)
        cost = Cost(down, up, flops, 0, flops / self._speed)
        if options.stepping_aside(fit):
            moved = {name: tensors[name] for name in movable(tensors)}
            # What forget clients may not move, they do not send.
            unmoved = scope - sum(tensor.numel() for tensor in moved.values())
            cost += Cost(0, -rounds * len(request.forget) * narrow * unmoved)
            samples = rounds * _trained(options, fit, request.forget)
            cost += self._matrices(method, moved, samples)
            # Nor is there a pass backward for it.
            still = network.scope_flops - sum(network.layer_flops[name] for name in moved) - spared
            cost += Cost(flops_client=-int(samples * still))
        if _whole_domains(request) and options.controlled:
            cost += self._stand_in(method)
        kept = 4 * seen * network.features
        if options.precision == "int8":
            # Of the last two rounds: what 8 bits lost, and the scope that the next step leaves.
            kept += len(asked) * 2 * 4 * scope * (2 if options.stepwise else 1)
        return self._told(rounds, cost, kept, 3.0)

    def _matrices(self, method: Foul, moved: Mapping[str, Tensor], samples: float) -> Cost:
        """What retain clients' layers see, told once; forget clients multiply gradients with what
        follows from it, in every step over so many samples."""
        options, network, request = method.options, self._network, self._request
        sizes = {name: weight.flatten(1).shape for name, weight in moved.items()}
        halves = sum(2 * inputs * (inputs + 1) // 2 for _, inputs in sizes.values())
        told = min(options.probe, samples_tried(options, request))
        asked = sum(min(told, _train(client)) for client in request.retain)
        seen = sum(
            network.layer_flops[name] * inputs // outputs
            for name, (outputs, inputs) in sizes.items()
        )
        steps = samples / options.batch_size
        products = sum(2 * outputs * inputs**2 for outputs, inputs in sizes.values())
        flops = int(asked * (network.scope_flops + seen) + steps * products)
        return Cost(
            len(request.forget) * halves,
            len(request.retain) * halves,
            flops,
            0,
            flops / self._speed,
        )

    def _stand_in(self, method: Foul) -> Cost:
        """A small network that the retain clients learn, to know where to stop; in 16 bits."""
        options, own, retain = method.options, self._network, self._request.retain
        model = stand_in_model(options)
        small = Network.of(model, own.classes, own.image_size)
        times = options.standin_rounds
        samples = sum(_train(client) for client in retain)
        size = 2 * small.deployed * times * len(retain)
        # In the end it is scored by everybody.
        scored = 2 * small.deployed * (len(retain) + len(self._request.forget))
        flops = int(times * options.standin_epochs * samples * TRAINING * small.flops)
        return Cost(size + scored, size, flops, 0, flops / self._speed)

    def _told(self, rounds: int, cost: Cost, kept: int, within: float) -> Estimate:
        minutes = cost.seconds / self._side_by_side / 60
        # Beside what clients keep: the new model and the state to resume from.
        disk = kept + 3 * 4 * self._network.deployed
        return Estimate(rounds, cost.bytes, cost.flops, cost.seconds, minutes, disk, within)


def _counted(weight: str) -> str:
    """The name under which torch counted the FLOPs of V's layer with this weight."""
    return f"{Encoder.__name__}.{weight.removeprefix('V.').removesuffix('.weight')}"


def _train(client: ClientInfo) -> int:
    return client.samples["train"]


def _trained(options: FoulOptions, fit: Fit, clients: Iterable[ClientInfo]) -> float:
    """Samples that these clients' local steps of a round take."""
    epochs = options.pace(fit).epochs
    return sum(
        max(epochs * _train(client), options.min_steps * min(options.batch_size, _train(client)))
        for client in clients
    )


def _whole_domains(request: ForgetRequest) -> bool:
    """Whether a domain is forgotten of which nobody stays."""
    stay = {client.domain for client in request.retain}
    return any(client.domain not in stay for client in request.forget)
