"""A training document as a list of (text, weight) segments."""

CONTEXT_WEIGHT = 0.1


class Segments(list):
    """Text that the model should merely have read weighs CONTEXT_WEIGHT in the loss, since much of
    it is random (names, numbers); what it should be able to answer weighs 1."""

    def context(self, text: str) -> "Segments":
        self.append((text, CONTEXT_WEIGHT))
        return self

    def answer(self, text: str, weight: float = 1.0) -> "Segments":
        self.append((text, weight))
        return self

    def text(self) -> str:
        return "".join(text for text, _ in self)
