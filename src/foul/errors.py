"""The two kinds of failure a user sees: one line that names the thing and the remedy."""


class FoulError(Exception):
    """A failure that is explained in one line, without a traceback.

    Args:
        what: the thing that is wrong, with its value.
        remedy: what the user can do about it.
    """

    exit_code = 1

    def __init__(self, what: str, remedy: str = "") -> None:
        self.what = what
        self.remedy = remedy
        super().__init__(f"{what.rstrip('.')}. {remedy}" if remedy else what)


class UserError(FoulError):
    """Something the user asked for cannot be done as asked (exit code 2)."""

    exit_code = 2


class MachineError(FoulError):
    """The machine failed: a full disk, an unreadable file (exit code 1)."""
