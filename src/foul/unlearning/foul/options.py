"""What can be chosen about FOUL, and the paper's choices."""

import math
from dataclasses import dataclass
from typing import Literal

from pydantic import Field, model_validator

from foul.client.compress import Precision
from foul.config.schema import Section
from foul.matching import MatchingOptions

Fit = Literal["unfit", "overfit", "fitted", "sure"]
"""Of the retain clients' training data: something is left to learn; it is known far better than
held-out data; nothing much is left; or the learned model is sure of every label."""


Forget = Literal["weakest", "bounded", "negated"]
"""What forget clients descend: how far their weakest answers are from being wrong, as many as must
be; a bounded loss of all answers; or cross-entropy, and then their delta counts with a minus."""


@dataclass(frozen=True)
class Pace:
    """How clients and server work: local epochs and learning rate, the server's momentum, the
    largest radius, what forget clients descend and how far down."""

    epochs: float
    rate: float
    rate_epochs: float
    """The rate is meant for so many epochs: in more of them, steps are shorter."""
    momentum: float
    kappa: float
    forget: Forget
    depth: float


class FoulOptions(Section):
    """How FOUL unlearns."""

    rounds: int = Field(default=5, ge=1)
    """Planned rounds; local rates fall over them."""
    extra: int = Field(default=5, ge=0)
    """Further rounds while retain validation accuracy is below the learned model's by more than
    chance; planned from the beginning if the retain clients' training data is not fitted."""
    learned_share: float = Field(default=0.45, ge=0)
    """And as many of them as make this share of the rounds that learning took: after a long
    learning, further rounds still are few beside those of a Retrain. 0: none. `sure_share` where
    that counts."""
    chance: float = Field(default=2.0, ge=0)
    """How many standard errors of an accuracy are taken for chance."""
    scope: tuple[Literal["V", "head"], ...] = Field(default=("V", "head"), min_length=1)
    """The parts that travel and change."""
    still: Literal["nothing", "square"] = "square"
    """What of V does not, all the same: nothing (the paper), or the convolutions of its last stage
    that have as many inputs as outputs. They are half of its weights or more, and forgetting does
    without."""
    matching: bool = True
    """Stage (1)+(2); off: stage (1), FedAvg of the scope over retain clients."""
    forget: Forget = "weakest"
    """What forget clients send: the delta of bringing down as many of the weakest answers as the
    target says must be wrong (`weakest`), of a bounded unlearning loss of all answers, or of
    cross-entropy (the paper), which then counts with a minus. `unfit_forget` where that counts."""
    depth: float = Field(default=1.0, ge=0)
    """How far down `weakest` brings them: to a margin log(p_y / (1 - p_y)) of minus this.
    `unfit_depth` where that counts."""
    flat: float = Field(default=0.01, ge=0)
    """A round in which no radius lowers forget accuracy by this much, and it is above the aim, has
    shown that the loss is flat: the model is sure of every label. From the next round on, forget
    clients that descend the bounded loss take -log(1 - p_y) instead, whose slope does not vanish,
    the radius is a share of the larger mean norm, and of radii with the same effect the largest is
    taken. 0: never."""
    steep_rate: float = Field(default=0.25, gt=0)
    """Their local learning rate then, as a share of the rate."""
    level: float = Field(default=0.3, ge=0)
    """Weight of a second loss of forget clients that bring down their weakest answers: by how much
    they are surer of their training samples than of their own held-out ones, quantile by quantile.
    It is such differences that attacks see, and accuracy does not show them; and when nearly enough
    answers are wrong, this loss still has a slope. `sure_level` or `overfit_level` where these
    count."""
    aside: float = Field(default=0.001, ge=0)
    """Forget clients that bring down their weakest answers move the weights of V's first stage and
    of the head only, in directions that retain clients do not use: their gradients are multiplied
    by lambda (C + lambda)^-1, with C the second moment of the layer's inputs over the retain
    clients and lambda this share of its mean eigenvalue. Their deltas are then never shortened to
    the retain clients', and the radius is a share of the longer ones. 0: they move all of the
    scope, as who descends another loss does: in these directions that is too flat."""
    aside_kappa: float = Field(default=2.0, ge=0)
    """The largest radius then, as a multiple of `kappa`: on such ways there is less to lose. Where
    fewer rounds are planned than `rounds` and `extra`, in proportion larger: they have to get as
    far."""
    forget_from: Literal["round", "centre"] = "centre"
    """Where forget clients start: from the model of the round (the paper), or from where the retain
    clients' mean would lead, which is what their deltas must then conflict with."""
    fairness: float = Field(default=1.0, ge=0)
    """How much more retain clients count in their mean that still lose: by samples times this power
    of their training loss (q-fair federated learning). 0: by samples alone."""
    anchor: Literal["retain", "all"] = "retain"
    """Whose mean the update stays close to; `all` is the paper's."""
    normalise: Literal["none", "retain_mean"] = "retain_mean"
    """Bring all deltas to the retain clients' mean norm."""
    simplex: Literal["split", "joint"] = "split"
    """Retain and forget weights sum to 1 each (the proof), or together (the theorem)."""
    radius: Literal["kappa", "sqrt_kappa"] = "kappa"
    """The proof's radius, or the theorem's."""
    radius_of: Literal["anchor", "mean_norm"] = "mean_norm"
    """What kappa is a share of: the anchor's norm (the paper), or the deltas' mean norm."""
    kappa: float = Field(default=1.0, ge=0)
    """Radius of the ball around the anchor; with `control`, the largest one. At most `unfit_kappa`
    where that counts."""
    beta: float = Field(default=2.0, gt=0)
    """Weight of the forget clients in the matching. At 1 the optimum may be little more than what
    retain clients have in common, and a longer way along it forgets less."""
    rescale: bool = False
    """Divide the update by 1 + kappa^2, as the authors do."""
    server_rate: float = Field(default=1.0, gt=0)
    """Step eta_g along the update."""
    epochs: float = Field(default=0.5, gt=0)
    """Local epochs on the cached outputs of the frozen parts; `unfit_epochs` or `sure_epochs` where
    these count."""
    unfit: float = Field(default=0.35, ge=0)
    """The learned model's mean loss on the retain clients' training samples above which it has not
    fitted them: there is something to learn then, where else clients would only drift. Six
    options then count instead of `epochs`, `rate`, `kappa`, `forget` and `depth`, for as many
    rounds as `extra` allows."""
    unfit_epochs: float = Field(default=1.5, gt=0)
    """Local epochs then."""
    unfit_rate: float | None = Field(default=0.03, gt=0)
    """Local learning rate then. The paper's form has none of its own: `rate`."""
    unfit_momentum: float = Field(default=0.5, ge=0, lt=1)
    """The share of the retain clients' last step that is added to the next one then (server
    momentum, as in FedAvgM)."""
    unfit_kappa: float | None = Field(default=0.5, ge=0)
    """The largest radius then, if `kappa` is larger: steps are longer, and beyond half of their
    norm the radius takes more from retain clients than from forget clients. The paper's form has
    none of its own."""
    unfit_forget: Literal["weakest", "bounded"] = "weakest"
    """What forget clients descend then, if `forget` is weakest."""
    unfit_depth: float = Field(default=6.0, ge=0)
    """The `depth` then: training samples that are answered wrongly must not be nearly right, where
    others are plainly wrong. It does what `level` does elsewhere."""
    overfit: float = Field(default=0.2, ge=0, le=1)
    """The accuracy on the retain clients' training samples above that on their held-out ones from
    which on a model that has fitted them, and is not sure of all, has learned them by heart: the
    longer work of `unfit_epochs`, `unfit_rate` and `unfit_momentum` then still makes it better on
    others, forget clients descend `unfit_forget`, and the radius may be as large as `kappa`.
    1: never."""
    overfit_level: float = Field(default=0.0, ge=0)
    """The weight `level` then, whatever forget clients descend, unless the target is an estimate
    for a whole domain, which `indistinct` may lower."""
    sure: float = Field(default=0.02, ge=0)
    """The loss of `unfit` below which the model is sure of every label. Retain clients then give
    back in a round what was forgotten in the one before, and in long steps both sides only tear at
    the model. 0: never."""
    sure_epochs: float | None = Field(default=1.4, gt=0)
    """Local epochs then, if `epochs` are fewer, in steps so much shorter that the way (rate times
    steps) stays as long. The paper's form has none of its own."""
    sure_share: float = Field(default=0.3, ge=0)
    """The share `learned_share` then: rounds are longer."""
    sure_level: float = Field(default=0.0, ge=0)
    """The weight `level` then: the longer work of `sure_epochs` does without, and it takes more
    from those who stay than it hides."""
    min_steps: int = Field(default=4, ge=1)
    """At least so many local steps, however few samples a client has."""
    rate: float = Field(default=0.08, gt=0)
    """Local learning rate; `unfit_rate` where that counts."""
    final_rate: float = Field(default=0.25, gt=0, le=1)
    """Share of the rate that is left in the last round, after half a cosine; 1: constant."""
    batch_size: int = Field(default=32, ge=2)
    """Samples per local step."""
    momentum: float = Field(default=0.9, ge=0, lt=1)
    """Momentum of the local SGD."""
    precision: Precision = "int8"
    """How deltas travel (int8 with error feedback)."""
    downwards: Literal["scope", "step"] = "step"
    """What clients are sent where deltas have 8 bits: the scope in 16, or, after the first round,
    the server's last step in 8. The server then takes the step that it sends."""
    control: bool = True
    """Choose the radius of each round so that forget accuracy lands on what a model that never saw
    the data would have: forget clients try some radii. Off: always kappa."""
    target: float | None = Field(default=None, ge=0, le=1)
    """The forget accuracy to land on, instead of an estimate."""
    pool: bool = True
    """Where others of the domain stay, the target is measured on the domain's held-out samples.
    These are few: draw their accuracy towards that of all domains, as far as chance may have parted
    them."""
    curve: float = Field(default=0.3, ge=0, le=1)
    """And expect errors to grow with this power of how many times fewer samples of the domain stay:
    the learned model had those of the forgotten clients too. 0: they do not."""
    indistinct: bool = True
    """Where the target is the estimate for a whole domain: aim no higher than the forget clients'
    accuracy on their own held-out samples, if that is lower by more than chance. Not where they
    level (`level`) or step aside (`aside`), which is for the same end."""
    ramp: float = Field(default=0.5, ge=0, le=1)
    """Share of the planned rounds over which forget accuracy is led down to the target."""
    probe: int = Field(default=256, ge=1)
    """Samples with which each forget client tries a radius, and at most so many by which each
    retain client tells what its layers see (`aside`)."""
    probe_together: int = Field(default=1280, ge=0)
    """If they are few, so many more that they try it with this many together."""
    probe_share: float = Field(default=0.1, ge=0)
    """But together with no more than this share of the samples that retain clients train on: to
    try radii must stay cheap beside a round. 0: no limit."""
    calibrate: bool = True
    """Where they started from the centre, forget clients have told how they answer all of their
    samples there: what they try with some of them is moved by the difference."""
    standin_rounds: int = Field(default=6, ge=1)
    """Rounds of the stand-in: a small network trained from scratch over the retain clients before
    the first step, from which the never-seen accuracy of a whole domain is estimated."""
    standin_width: float = Field(default=0.25, gt=0, le=4)
    """Width of the stand-in."""
    standin_epochs: float = Field(default=2.0, gt=0)
    """Local epochs of the stand-in per round."""
    standin_rate: float = Field(default=0.1, gt=0)
    """Local learning rate of the stand-in."""
    slope: float = Field(default=0.4, ge=0, le=5)
    """How much of the large model's advantage over the stand-in on retain data (in logits of
    accuracy) is expected on data that neither saw."""
    offset: float = Field(default=0.45, ge=-5, le=5)
    """What is expected there of any large model, however large its advantage on retain data."""
    handicap: float | None = Field(default=0.5, ge=0)
    """And an estimate is at most the learned model's accuracy on the domain's held-out samples,
    less so many logits: who never saw a domain answers it worse than who did. None: no limit."""
    delta: float = Field(default=0.02, ge=0)
    """Largest accepted loss of retain validation accuracy."""
    departed: bool = False
    """The forget clients are gone: their last update of the learning stage, if the run kept it
    (federation.keep_deltas), counts with a minus; nothing can then be tried or estimated."""

    @model_validator(mode="after")
    def _fits_together(self) -> "FoulOptions":
        if self.departed and self.target is not None:
            raise ValueError("target needs forget clients that can be asked; leave departed off")
        if self.departed and not self.matching:
            raise ValueError("departed=true has deltas to match; leave matching on")
        if self.rescale and self.controlled:
            raise ValueError("rescale would shorten the radius that was chosen; set control=false")
        if self.forget_from == "centre" and self.anchor == "all":
            raise ValueError(
                "forget_from=centre needs anchor=retain: the mean of all is unknown while forget "
                "clients have not answered"
            )
        return self

    def fit(self, loss: float | None, gap: float | None) -> Fit:
        """What a mean loss on the retain clients' training samples says, and how much better than
        held-out samples they are answered; nothing if unknown."""
        if loss is None:
            return "fitted"
        if loss > self.unfit:
            return "unfit"
        if loss < self.sure:
            return "sure"
        return "overfit" if gap is not None and gap > self.overfit else "fitted"

    def pace(self, fit: Fit) -> Pace:
        """How all work, by how well the learned model has fitted the data."""
        if fit in {"fitted", "sure"}:
            more = (self.sure_epochs or 0.0) if fit == "sure" else 0.0
            epochs = max(self.epochs, more)
            return Pace(
                epochs,
                self.rate,
                self.epochs,
                0.0,
                self._kappa(fit),
                self._forget(fit),
                self.depth,
            )
        limit = self.unfit_kappa if fit == "unfit" else None
        return Pace(
            self.unfit_epochs,
            self.unfit_rate or self.rate,
            self.unfit_epochs,
            self.unfit_momentum,
            self._kappa(fit) if limit is None else min(self._kappa(fit), limit),
            self._forget(fit),
            self.unfit_depth,
        )

    def _forget(self, fit: Fit) -> Forget:
        """What forget clients descend."""
        other = fit in {"unfit", "overfit"} and self.forget == "weakest"
        return self.unfit_forget if other else self.forget

    def _kappa(self, fit: Fit) -> float:
        """The largest radius that is wanted."""
        return self.kappa * (self.aside_kappa if self.stepping_aside(fit) else 1.0)

    def levelling(self, fit: Fit, estimated: bool) -> float:
        """Weight of the levelling loss of forget clients; `estimated`: the target is an estimate
        for a whole domain."""
        if self.forget == "negated":
            # Their delta is one of learning: there is nothing to level in it.
            return 0.0
        if fit in {"unfit", "overfit"}:
            return self.overfit_level if fit == "overfit" and not estimated else 0.0
        if self.forget != "weakest":
            return 0.0
        return self.sure_level if fit == "sure" else self.level

    def follows_held_out(self, fit: Fit) -> bool:
        """Whether an estimate may be lowered to the forget clients' held-out accuracy. Who levels
        pulls held-out answers down too, and who steps aside moves what all of a domain have in
        common: the aim would follow them further and further."""
        return (
            self.indistinct
            and not self.levelling(fit, estimated=True)
            and not self.stepping_aside(fit)
        )

    def stepping_aside(self, fit: Fit) -> float:
        """The share `aside` that counts, 0 if forget clients move all of the scope."""
        if self._forget(fit) != "weakest" or self.departed or not self.matching:
            return 0.0
        return self.aside

    def planned(self, fit: Fit, learned_rounds: int) -> int:
        """Rounds, if the learned model has fitted the retain clients' data so well in so many.
        Where nothing can be tried, more of them would only push further."""
        if self.departed:
            return self.rounds
        longest = self.rounds + self.extra
        if fit in {"unfit", "overfit"}:
            return longest
        share = self.sure_share if fit == "sure" else self.learned_share
        return max(self.rounds, min(longest, math.floor(share * learned_rounds)))

    def tried(self, forgotten: int, retained: int) -> int:
        """Samples with which each of so many forget clients tries a radius, where so many samples
        are retained."""
        clients = max(1, forgotten)
        wanted = max(self.probe, math.ceil(self.probe_together / clients))
        if not self.probe_share:
            return wanted
        return min(wanted, math.ceil(self.probe_share * retained / clients))

    @property
    def stepwise(self) -> bool:
        """Whether clients are sent steps. With more bits, a step is as long as the scope."""
        return self.downwards == "step" and self.precision == "int8"

    @property
    def weights_precision(self) -> Precision:
        """8 bits are enough for deltas, not for weights."""
        return "bfloat16" if self.precision == "int8" else self.precision

    @property
    def frozen_precision(self) -> Precision:
        """Frozen weights keep more digits than weights that change."""
        return "float32" if self.precision == "float32" else "float16"

    @property
    def controlled(self) -> bool:
        return self.control and self.matching and not self.departed

    def matching_options(self, fit: Fit, planned: int | None = None) -> MatchingOptions:
        """The choices of the matching, with so many rounds planned, or as many as there may be."""
        aside = self.stepping_aside(fit) > 0
        hurry = (self.rounds + self.extra) / planned if aside and planned else 1.0
        whole = self.normalise == "retain_mean" and aside
        longer = self.radius_of == "mean_norm" and aside
        return MatchingOptions(
            kappa=hurry * self.pace(fit).kappa,
            simplex=self.simplex,
            radius=self.radius,
            radius_of="larger_mean" if longer else self.radius_of,
            beta=self.beta,
            forget="negated" if self.departed or self.forget == "negated" else "bounded",
            anchor=self.anchor,
            normalise="retain_least" if whole else self.normalise,
            rescale=self.rescale,
        )


def paper_options(as_printed: bool = False) -> FoulOptions:
    """The paper's form: V alone, all clients' mean as anchor, negated deltas, no normalisation,
    kappa 0.5, eta_g 0.2, nothing steered. `as_printed` takes the theorem literally: one simplex,
    sqrt(kappa)."""
    return FoulOptions(
        rounds=10,
        extra=0,
        learned_share=0.0,
        sure_share=0.0,
        fairness=0.0,
        scope=("V",),
        still="nothing",
        forget="negated",
        level=0.0,
        aside=0.0,
        beta=1.0,
        forget_from="round",
        anchor="all",
        normalise="none",
        radius_of="anchor",
        kappa=0.5,
        server_rate=0.2,
        epochs=2.0,
        unfit_epochs=2.0,
        unfit_rate=None,
        unfit_momentum=0.0,
        unfit_kappa=None,
        unfit_depth=1.0,
        overfit=1.0,
        overfit_level=0.0,
        sure=0.0,
        sure_epochs=None,
        min_steps=1,
        rate=0.02,
        final_rate=1.0,
        precision="float32",
        downwards="scope",
        control=False,
        probe_together=0,
        probe_share=0.0,
        calibrate=False,
        handicap=None,
        pool=False,
        curve=0.0,
        indistinct=False,
        delta=1.0,
        flat=0.0,
        simplex="joint" if as_printed else "split",
        radius="sqrt_kappa" if as_printed else "kappa",
    )
