"""What a receipt does not claim, by the kind of event and the method."""

from foul.erasure.receipts.statement import Statement
from foul.report.wording import (
    ALREADY_TOLD,
    DATA_ELSEWHERE,
    FROZEN_PARTS,
    MEASURED_ONLY,
    OTHER_ATTACKS,
)

NO_GUARANTEE = (
    "No mathematical guarantee is given, neither of this model nor of the method: no epsilon, no"
    " delta."
)
FOUL_PARTS = (
    "FOUL changes the encoder V and the head. The encoders E and K learned from the erased data and"
    " stay as they are."
)
COPIES = (
    "Copies outside the federation's store are not touched: backups, exported models, files that"
    " were passed on, what participants keep."
)
OLD_MODEL = (
    "The model in service is the one from before. It still carries what it learned from the"
    " participants named here."
)
RELEARNED = (
    "From now on these participants take part again, and models learn from their data. Earlier"
    " receipts speak of the models that were in service until then."
)
THIS_MODEL = (
    "The figures are those of the model that was in service on that day. A model that replaces it"
    " must be verified again."
)
ONE_RETRAINING = (
    "The model that was retrained to compare with is one of many that training without the data can"
    " give: another seed gives slightly other figures. It was not put into service and is not kept."
)
SIGNATURE = (
    "The signature shows that the holder of the key wrote this and that nothing was changed since."
    " It cannot show that what is written is true."
)


def not_claimed(statement: Statement) -> list[str]:
    """The sentences that belong to this event."""
    if statement.kind == "erasure":
        return [*_of_erasure(statement), SIGNATURE]
    if statement.kind == "verification":
        compared = [ONE_RETRAINING] if statement.retrain_costs else []
        return [*_of_model(statement), THIS_MODEL, *compared, SIGNATURE]
    if statement.kind in ("failure", "withdrawal"):
        return ["Nothing was erased.", OLD_MODEL, SIGNATURE]
    if statement.kind == "readmission":
        return [RELEARNED, SIGNATURE]
    return [SIGNATURE]


def _of_erasure(statement: Statement) -> list[str]:
    return [*_of_model(statement), COPIES, DATA_ELSEWHERE, ALREADY_TOLD]


def _of_model(statement: Statement) -> list[str]:
    """What figures of a model cannot show."""
    name = statement.method.name if statement.method else ""
    # `retrain-matched` and `retrain-again` begin anew, too.
    frozen = [] if name.startswith("retrain") else [FROZEN_PARTS]
    own = [FOUL_PARTS] if name.startswith("foul") else []
    return [MEASURED_ONLY, NO_GUARANTEE, OTHER_ATTACKS, *frozen, *own]
