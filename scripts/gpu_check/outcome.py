"""The end of a part."""


class Outcome:
    """`status` is passed, missed (a figure is below its bar), failed, skipped or stopped."""

    def __init__(self, status, message="", figures=None):
        self.status = status
        self.message = message
        self.figures = figures or {}


class Failure(Exception):
    def __init__(self, message, figures=None):
        super().__init__(message)
        self.figures = figures or {}


class Skip(Exception):
    """This machine lacks something that the part needs. The text names it."""
