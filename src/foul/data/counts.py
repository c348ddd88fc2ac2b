"""How many images a configuration will use, without decoding one."""

from collections import Counter
from dataclasses import dataclass

from foul.config.schema import DataConfig
from foul.data.folder import scan
from foul.data.folder_set import chosen_domains
from foul.data.known import known
from foul.errors import UserError
from foul.names import canonical


@dataclass(frozen=True)
class ImageCounts:
    """Images of each domain (training and test together), and the number of classes."""

    domains: dict[str, int]
    classes: int


def image_counts(config: DataConfig) -> ImageCounts:
    """Count from the folder if there is one, else from the catalogue.

    Raises:
        UserError: the data set is unknown, or a folder of one's own has no path.
    """
    entry = None if canonical(config.name) == "folder" else known(config.name)
    if config.path is not None:
        listing = scan(config.path.expanduser())
        counted = Counter(image.domain for image in listing.images)
        domains, classes = dict(sorted(counted.items())), len(listing.classes)
    elif entry is not None:
        domains, classes = dict(entry.domains), len(entry.classes)
    else:
        raise UserError("data.name=folder needs a folder or zip", "Set data.path to it")
    if config.domains:
        names = chosen_domains(config.domains, tuple(domains))
        domains = {name: domains[name] for name in names}
    limit = config.max_per_domain
    if limit is not None:
        domains = {name: min(count, limit) for name, count in domains.items()}
    return ImageCounts(domains, classes)
