"""Sentences for people who are not researchers, shared by the report and the receipts."""

QUESTIONS = {
    "fa": "How often the model is right on the erased data",
    "ra": "How often the model is right on the training data of those who stay",
    "ta": "How often the model is right on new data",
    "forget_test": "How often the model is right on new data like the erased",
    "retain_test": "How often the model is right on new data like that of those who stay",
    "mia_auc": "How well an attacker tells erased data from data that was never used",
    "mia_accuracy": "How often an attacker is right about what was used; half is guessing",
    "mia_tpr_1": "Erased samples that an attacker finds while wrongly accusing 1 % of the others",
    "k_probe": "What the part called K still knows",
    "v_probe": "What the part called V still knows",
    "relearn": "How fast the erased data is learned again",
    "backdoor": "How often the planted mark still works",
}
"""What a figure of `results.json` answers."""

MEASURED_ONLY = (
    "This is no proof of erasure. It is a set of measurements on one model, with the uncertainty of"
    " measurements."
)
OTHER_ATTACKS = (
    "The attacks that were tried are not all attacks. Another one may see what these did not."
)
FROZEN_PARTS = (
    "Methods other than retraining leave parts of the network as they were. These frozen parts may"
    " still know something about the erased data, even where the model's answers no longer show it."
)
DATA_ELSEWHERE = "The data itself is with the participants. Nothing here deletes it."
ALREADY_TOLD = (
    "What the model had already answered, or passed on, before the erasure cannot be taken back."
)
