"""The configuration of a run, as pydantic models: names, types, ranges, defaults, meaning."""

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator


def _absolute_path(path: Path | None) -> Path | None:
    return path and path.expanduser().absolute()


class Section(BaseModel):
    """A part of the configuration: unknown keys are errors, values cannot change."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, use_attribute_docstrings=True, allow_inf_nan=False
    )


class DataConfig(Section):
    """Which images."""

    name: str = "digits"
    """A known data set (see `foul data list`), or `folder` for your own ROOT/DOMAIN/CLASS/*."""
    path: Path | None = None
    """Folder or zip of a data set that is not embedded."""
    image_size: int = Field(default=28, ge=8, le=1024)
    """Height and width in pixels; folder data sets are resized to it when they are decoded."""
    domains: tuple[str, ...] = ()
    """Use only these domains, in this order; empty means all."""
    test_fraction: float = Field(default=0.2, gt=0, lt=1)
    """Share of each domain kept as its test set, where file names tell no official one."""
    max_per_domain: int | None = Field(default=None, ge=1)
    """Use at most this many images of each domain (drawn at random)."""
    allow_corrupt: bool = False
    """Skip images that cannot be decoded instead of stopping."""
    cache: Path | None = None
    """Where decoded images are kept; default: FOUL_CACHE, else ~/.cache/foul."""
    label_noise: float = Field(default=0.25, ge=0, lt=0.5)
    """Colored-MNIST only: share of flipped labels."""

    # Absolute, so that a run can be resumed from any directory.
    _absolute = field_validator("path", "cache")(_absolute_path)


class ClientsConfig(Section):
    """How domains become clients."""

    per_domain: int = Field(default=5, ge=1)
    """Clients of each domain."""
    partition: Literal["iid", "dirichlet", "uneven"] = "iid"
    """How a domain's samples are shared out: evenly, with skewed labels, or in uneven sizes."""
    alpha: float = Field(default=0.5, gt=0)
    """Concentration of the Dirichlet draw for `dirichlet` and `uneven`; smaller is more skewed."""
    validation_fraction: float = Field(default=0.1, ge=0, lt=1)
    """Share of a client's samples it keeps out of training."""
    redeal: float | None = Field(default=None, gt=0, lt=1)
    """Draw this share of each domain's samples anew, by the seed, as its training data, instead of
    the data set's own split: shadow models differ in what they saw (`foul ulira`)."""


class ModelConfig(Section):
    """The disentangled network."""

    backbone: Literal["small", "resnet18", "resnet50", "tiny"] = "small"
    """Residual backbone; `small` suits images of about 32 pixels, `tiny` is for tests."""
    norm: Literal["batch", "group"] = "batch"
    """Normalisation layers. Batch statistics are averaged over clients; groups need none."""
    width: float = Field(default=1.0, gt=0, le=4)
    """Multiplies the channels of every layer."""
    split: int = Field(default=1, ge=0, le=3)
    """How many stages belong to the shallow extractor E; the rest becomes K and V."""
    k_width: float = Field(default=1.0, gt=0, le=4)
    """Channels of the causal encoder K relative to the backbone's."""
    v_width: float = Field(default=0.75, gt=0, le=4)
    """Channels of the non-causal encoder V relative to the backbone's."""
    k_channels: int = Field(default=24, ge=1)
    """Latent maps of K (the paper's invariant channels)."""
    v_channels: int = Field(default=8, ge=1)
    """Latent maps of V (the paper's variant channels)."""
    latent_size: int = Field(default=4, ge=1)
    """Largest side of the latent maps; larger maps are averaged down to it."""
    decoder_channels: int = Field(default=32, ge=4)
    """Channels of the decoder's first layer; each further layer has half."""
    head: Literal["joint", "causal"] = "joint"
    """What is deployed: the head on [z_K, z_V], or the classifier on z_K alone (the paper's)."""
    adversarial: bool = False
    """Add the paper's adversarial head psi on z_K."""
    weights: Path | None = None
    """ImageNet weights for the backbone: a torchvision-style ResNet state dict."""

    _absolute = field_validator("weights")(_absolute_path)

    @model_validator(mode="after")
    def _leaves_something_to_split(self) -> "ModelConfig":
        stages = {"tiny": 2, "small": 3}.get(self.backbone, 4)
        if self.split >= stages:
            raise ValueError(
                f"split={self.split} leaves no stage of {self.backbone} for K and V; "
                f"use at most {stages - 1}"
            )
        return self


class L2UConfig(Section):
    """Learning to unlearn: two alternating phases (Algorithm 1)."""

    generator_epochs: float = Field(default=1.0, ge=0)
    """Local epochs of the generator phase (E, K, V, D on reconstruction, L_K and L_V)."""
    mid_epochs: float = Field(default=1.0, ge=0)
    """Local epochs of the MID phase (E, K, xi on L_K and L_gtc; V and the joint head)."""
    generator_rate: float = Field(default=0.02, gt=0)
    """Learning rate of the generator phase."""
    mid_rate: float = Field(default=0.05, gt=0)
    """Learning rate of the MID phase."""
    alpha_rec: float = Field(default=1.0, ge=0)
    """Weight of the reconstruction loss."""
    alpha_k: float = Field(default=0.1, ge=0)
    """Weight of the prototype loss L_K."""
    alpha_v: float = Field(default=0.1, ge=0)
    """Weight of the variance hinge L_V."""
    alpha_gtc: float = Field(default=1.0, ge=0)
    """Weight of the classification loss on z_K."""
    alpha_joint: float = Field(default=1.0, ge=0)
    """Weight of the joint head's classification loss, which trains V and the head."""
    alpha_adv: float = Field(default=0.0, ge=0)
    """Weight of the adversarial head (needs model.adversarial=true)."""
    eta_adv: float = Field(default=1.0, gt=0)
    """Step of psi relative to the MID rate."""
    kl_weight: float = Field(default=0.01, ge=0)
    """Weight of the KL divergence to N(0, I) in the reconstruction loss."""
    temperature: float = Field(default=0.5, gt=0)
    """Temperature tau of the cosine similarities in L_K."""
    prototype_form: Literal["paper", "softmax"] = "paper"
    """L_K with the own class left out of the denominator (printed), or the usual softmax."""
    variance_form: Literal["total", "per_dimension"] = "total"
    """L_V on the total within-class variance (printed), or on each dimension (VICReg)."""
    evidence: bool = True
    """V must carry class evidence: the joint head sees z_K detached, and dropped for half of the
    samples. Off, the joint head's loss trains K too, and little can be unlearned from V."""
    reptile_step: float = Field(default=1.0, gt=0, le=1)
    """Outer step epsilon: theta + epsilon (theta_inner - theta); 1 is Algorithm 1."""

    @model_validator(mode="after")
    def _trains_something(self) -> "L2UConfig":
        if self.generator_epochs + self.mid_epochs == 0:
            raise ValueError("generator_epochs and mid_epochs are both 0; nothing would be trained")
        return self


class SupervisedConfig(Section):
    """Plain supervised training of the deployed network."""

    epochs: float = Field(default=2.0, gt=0)
    """Local epochs per round."""
    rate: float = Field(default=0.05, gt=0)
    """Learning rate."""


class AugmentConfig(Section):
    """Augmentation of training batches in the learning stage."""

    crop: float = Field(default=1.0, gt=0, le=1)
    """Smallest area of a random resized crop; 1 means no crop."""
    flip: bool = False
    """Mirror half of the images."""


class LearningConfig(Section):
    """The learning stage: what clients minimise, and for how long."""

    objective: Literal["l2u", "supervised"] = "l2u"
    """Learning to unlearn, or plain cross-entropy of the same network."""
    rounds: int = Field(default=40, ge=1)
    """Largest number of rounds."""
    patience: int = Field(default=8, ge=0)
    """Stop when validation accuracy has not improved for this many rounds; 0: never."""
    min_delta: float = Field(default=0.002, ge=0)
    """What counts as an improvement (a fraction of 1)."""
    batch_size: int = Field(default=32, ge=2)
    """Samples per local step."""
    momentum: float = Field(default=0.9, ge=0, lt=1)
    """Momentum of the local SGD; its state lives for one round."""
    weight_decay: float = Field(default=5e-4, ge=0)
    """Weight decay of the local SGD."""
    max_grad_norm: float = Field(default=5.0, ge=0)
    """Clip the gradient to this norm; 0: never."""
    schedule: Literal["constant", "cosine"] = "cosine"
    """How local rates change over the rounds."""
    server_rate: float = Field(default=1.0, gt=0)
    """Step of the server along the averaged update."""
    server_momentum: float = Field(default=0.0, ge=0, lt=1)
    """Momentum of the server's steps (FedAvgM)."""
    fix_statistics_after: int = Field(default=0, ge=-1)
    """After this round, batch statistics stay as they are and local training uses them too (FixBN);
    0: never, -1: from the first round on. Else clients of each domain train on statistics of their
    own, and the average that is evaluated fits none of them."""
    evaluate_every: int = Field(default=0, ge=0)
    """Also evaluate on the test sets every so many rounds; 0: only at the end."""
    l2u: L2UConfig = L2UConfig()
    supervised: SupervisedConfig = SupervisedConfig()
    augment: AugmentConfig = AugmentConfig()


class FederationConfig(Section):
    """Who takes part, and what happens when somebody does not."""

    participation: float = Field(default=1.0, gt=0, le=1)
    """Share of the clients asked in each round of learning, and of Retrain, `continue` and NoT,
    which go on with such rounds; other unlearning methods ask everybody they need."""
    quorum: float = Field(default=0.5, gt=0, le=1)
    """Share of the asked clients that must answer; below it the run stops, its state saved."""
    dropout: float = Field(default=0.0, ge=0, lt=1)
    """Simulated chance that a client is away in a round."""
    checkpoint_every: int = Field(default=1, ge=1)
    """Rounds between checkpoints."""
    keep_checkpoints: int = Field(default=2, ge=1)
    """How many checkpoints of the learning stage stay on disk."""
    keep_deltas: bool = False
    """Keep every client's last update of V and the joint head, so that FOUL can forget clients
    that have left (departed=true). It is data about the clients, so it is off by default."""
    history: Literal["none", "domains", "clients"] = "none"
    """Add up, while learning, what each domain or each client contributed, so that FedRecovery can
    subtract it: one model's size on disk for each."""


class FlowerConfig(Section):
    """The federation of SuperNodes that `engine=flower` drives."""

    superlink: str | None = None
    """Name of the connection in Flower's config.toml; default: the one it names as default."""
    home: Path | None = None
    """Flower's own folder with config.toml; default: FLWR_HOME, else ~/.flwr."""
    clients: tuple[str, ...] = ()
    """Clients that a new run waits for; empty: `min_clients` of any."""
    min_clients: int = Field(default=2, ge=1)
    """How many clients a new run waits for, if `clients` does not name them."""
    wait: float = Field(default=90.0, ge=0)
    """Seconds to wait for clients at the start; a run that goes on starts without the others."""
    deadline: float = Field(default=600.0, gt=0)
    """Seconds a client has for one task; one that needs longer is left out of the round."""
    largest_reply: int = Field(default=2**30, ge=1)
    """Bytes that a client's reply may have."""
    trust_names: bool = False
    """Let nodes that are not registered by name say themselves which client they are: for trials
    on one machine, where nobody else can connect."""

    _absolute = field_validator("home")(_absolute_path)


class BackdoorConfig(Section):
    """A trigger in some clients' training data: what they alone have taught can then be seen."""

    clients: tuple[str, ...] = ()
    """Clients (ids) or domains that carry the trigger; empty: nobody."""
    share: float = Field(default=0.5, gt=0, le=1)
    """Share of their training samples that get the trigger and the target label."""
    target: int = Field(default=0, ge=0)
    """Index of the class that the trigger stands for."""
    size: int = Field(default=4, ge=1, le=28)
    """Side of the trigger in pixels of an image of 28; it grows with the image."""


class Config(Section):
    """Everything that defines a run."""

    seed: int = Field(default=0, ge=0)
    """Root of all randomness."""
    device: str = Field(default="auto", pattern=r"^(auto|cpu|cuda(:\d+)?|mps)$")
    """`auto`, `cpu`, `cuda`, `cuda:N` or `mps`."""
    workers: int = Field(default=0, ge=0)
    """Processes that train clients side by side; 0: one per core on a CPU, one on a GPU."""
    threads: int = Field(default=0, ge=0)
    """Torch threads of a single worker; 0: one per core. Several workers have one thread each, and
    one worker of one thread gives the same bits as they do."""
    engine: Literal["local", "flower", "flower-sim"] = "local"
    """Where clients are: on this machine; at the nodes of a Flower federation (foul[flower]); or on
    this machine as virtual nodes of Flower's simulation (foul[simulation])."""
    tensorboard: bool = False
    """Also write TensorBoard events into the run folder (needs foul[tensorboard])."""
    data: DataConfig = DataConfig()
    clients: ClientsConfig = ClientsConfig()
    model: ModelConfig = ModelConfig()
    learning: LearningConfig = LearningConfig()
    federation: FederationConfig = FederationConfig()
    backdoor: BackdoorConfig = BackdoorConfig()
    flower: FlowerConfig = FlowerConfig()

    @property
    def data_seed(self) -> int:
        """Root of what is drawn or made of the data. Shadow models, which have seeds of their own,
        share out the very same samples."""
        return self.seed if self.clients.redeal is None else 0

    @model_validator(mode="after")
    def _adversarial_head_exists(self) -> "Config":
        if self.learning.l2u.alpha_adv > 0 and not self.model.adversarial:
            raise ValueError(
                "learning.l2u.alpha_adv > 0 needs the adversarial head; set model.adversarial=true"
            )
        return self
