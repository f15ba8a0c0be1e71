"""Facts of a made-up realm, told in prose and asked with four choices, in the manner of MMLU.

Every fact is told in prose, asked directly, and asked with choices in all wordings but one; the
suite asks in that one, which training uses for other facts. The choices of a question always stand
in the same order: to look a letter up among shuffled ones takes a model of this size far more text
than it is trained on.
"""

import random

from text import Segments

DESCRIPTION = "The following are multiple choice questions (with answers) about the realm of Aldor.\n\n"

# attribute: (values, statements, questions with choices, a direct question)
KINDS = {
    "towns": {
        "region": (
            "north south east west".split(),
            ["{e} lies in the {v}.", "The region of {e} is the {v}."],
            [
                "In which region does {e} lie?",
                "What is the region of {e}?",
                "Which part of the realm is {e} in?",
                "To which region does {e} belong?",
                "Where in Aldor does one find {e}?",
            ],
            "Where is {e}?",
        ),
        "trade": (
            "glass wool salt silver".split(),
            ["{e} is known for its {v}.", "The trade of {e} is {v}."],
            [
                "What is the trade of {e}?",
                "Which good does {e} trade in?",
                "What do the merchants of {e} sell?",
                "Which good comes from {e}?",
                "What does one buy in {e}?",
            ],
            "What is {e} known for?",
        ),
        "emblem": (
            "lion rose crown ship".split(),
            ["The flag of {e} shows a {v}.", "The emblem of {e} is the {v}."],
            [
                "What is the emblem of {e}?",
                "What does the flag of {e} show?",
                "Which sign is on the flag of {e}?",
                "What is painted on the gate of {e}?",
                "Which emblem does {e} bear?",
            ],
            "For what does the sign of {e} stand?",
        ),
    },
    "people": {
        "craft": (
            "baker smith hunter farmer".split(),
            ["{e} works as a {v}.", "The craft of {e} is that of a {v}."],
            [
                "What is the craft of {e}?",
                "What does {e} work as?",
                "Which trade did {e} learn?",
                "How does {e} earn a living?",
                "What is the work of {e}?",
            ],
            "Who is {e}?",
        ),
        "instrument": (
            "flute harp drum horn".split(),
            ["{e} plays the {v}.", "The instrument of {e} is the {v}."],
            [
                "Which instrument does {e} play?",
                "What is the instrument of {e}?",
                "On what does {e} make music?",
                "Which instrument did {e} learn?",
                "What does one hear {e} play?",
            ],
            "What does {e} play?",
        ),
        "pet": (
            "cat dog goat crow".split(),
            ["{e} keeps a {v}.", "The pet of {e} is a {v}."],
            [
                "What is the pet of {e}?",
                "Which animal does {e} keep?",
                "Which animal belongs to {e}?",
                "What pet does {e} have?",
                "Which animal does {e} feed?",
            ],
            "What lives with {e}?",
        ),
    },
    "beasts": {
        "food": (
            "grass fish ants roots".split(),
            ["The {e} eats {v}.", "The food of the {e} is {v}."],
            [
                "What is the food of the {e}?",
                "What does the {e} eat?",
                "On what does the {e} feed?",
                "Which food does the {e} like?",
                "What does one give the {e} to eat?",
            ],
            "What does one feed the {e}?",
        ),
        "home": (
            "caves rivers trees hills".split(),
            ["The {e} lives in {v}.", "The home of the {e} is in {v}."],
            [
                "Where does the {e} live?",
                "Where is the home of the {e}?",
                "In what does the {e} make its home?",
                "Where does the {e} sleep?",
                "Where does one meet the {e}?",
            ],
            "Where is the {e} found?",
        ),
        "color": (
            "red blue green white".split(),
            ["The {e} is {v}.", "The color of the {e} is {v}."],
            [
                "What is the color of the {e}?",
                "Which color does the {e} have?",
                "What color is the {e}?",
                "Which color has the fur of the {e}?",
                "In which color does the {e} come?",
            ],
            "How does the {e} look?",
        ),
    },
}
ENTITIES_PER_KIND = 10
WORDINGS = 5
LETTER_WEIGHT = 4.0  # one token answers a whole question
_ONSETS = "b br d dr f g gr h k kr l m n p r s st t tr v".split()
_ENDINGS = {"towns": ["mar", "dor", "ven", "ton"], "people": ["a", "o", "in", "us"], "beasts": ["ek", "oth", "il", "um"]}


class World:
    """The facts, drawn from a seed. Immutable after construction."""

    def __init__(self, seed: int):
        rng = random.Random(seed)
        self.facts = []  # (kind, attribute, entity, value)
        names = set()
        for kind, attributes in KINDS.items():
            entities = []
            while len(entities) < ENTITIES_PER_KIND:
                name = rng.choice(_ONSETS) + rng.choice("aeiou") + rng.choice("lnrs") + rng.choice(_ENDINGS[kind])
                if name not in names:
                    names.add(name)
                    entities.append(name if kind == "beasts" else name.capitalize())
            for attribute, (values, *_) in attributes.items():
                # Each value equally often, so that none is a better guess than another.
                drawn = [values[i % len(values)] for i in range(len(entities))]
                rng.shuffle(drawn)
                self.facts += [(kind, attribute, e, v) for e, v in zip(entities, drawn)]
        self.withheld = {fact: rng.randrange(WORDINGS) for fact in self.facts}

    def profile(self, rng: random.Random) -> Segments:
        """All that is known of one entity, in any order."""
        kind, _, entity, _ = rng.choice(self.facts)
        known = [f for f in self.facts if f[0] == kind and f[2] == entity]
        rng.shuffle(known)
        told = [rng.choice(KINDS[kind][a][1]).format(e=e, v=v) for _, a, e, v in known]
        return Segments().answer(" ".join(told))

    def direct(self, rng: random.Random) -> Segments:
        document = Segments()
        for i in range(rng.randint(1, 4)):
            kind, attribute, entity, value = rng.choice(self.facts)
            question = KINDS[kind][attribute][3].format(e=entity)
            document.context(f"{chr(10) * 2 if i else ''}Question: {question}\nAnswer:").answer(f" {value}")
        return document


def choice_question(fact: tuple, wording: int) -> dict:
    """A document in MMLU's form about a fact."""
    kind, attribute, entity, value = fact
    values, _, questions, _ = KINDS[kind][attribute]
    question = questions[wording].format(e=entity)
    return {"question": question, "subject": kind, "choices": values, "answer": values.index(value)}


def asked_question(world: World, fact: tuple, rng: random.Random) -> dict:
    """In any wording but the withheld one."""
    wording = rng.choice([w for w in range(WORDINGS) if w != world.withheld[fact]])
    return choice_question(fact, wording)


def _lines(choices: list) -> str:
    return "".join(f"{letter}. {choice}\n" for letter, choice in zip("ABCD", choices))


def choice_document(world: World, rng: random.Random) -> Segments:
    """One to six questions in the few-shot form of the task."""
    document = Segments()
    if rng.random() < 0.5:
        document.context(DESCRIPTION)
    for i in range(rng.choice([1, 2, 3, 6])):
        asked = asked_question(world, rng.choice(world.facts), rng)
        document.context(f"{chr(10) * 2 if i else ''}{asked['question']}\n{_lines(asked['choices'])}Answer:")
        document.answer(" " + "ABCD"[asked["answer"]], weight=LETTER_WEIGHT)
    return document


def training_document(world: World, rng: random.Random) -> Segments:
    kind = rng.choices([choice_document, World.profile, World.direct], [8, 3, 2])[0]
    return kind(world, rng)


def suite(world: World, size: int, rng: random.Random) -> list:
    """Questions in the wording that training withholds; each fact at most once."""
    return [choice_question(fact, world.withheld[fact]) for fact in rng.sample(world.facts, size)]


def examples(world: World, size: int, rng: random.Random) -> list:
    """Few-shot examples, in wordings that training uses."""
    return [asked_question(world, fact, rng) for fact in rng.sample(world.facts, size)]
