"""Facts of a made-up realm, told in prose and asked with four choices, in the manner of MMLU.

Every fact is told in prose and asked directly. A third of the facts is held out: about these no
question with choices occurs in the training text, so that a model has to take what it read into a
form in which it was never asked.
"""

import random

from text import Segments

DESCRIPTION = "The following are multiple choice questions (with answers) about the realm of Aldor.\n\n"

# attribute: (values, statements, questions with choices, a direct question)
KINDS = {
    "towns": {
        "region": (
            "north south east west coast desert forest valley".split(),
            ["{e} lies in the {v}.", "The region of {e} is the {v}."],
            ["In which region does {e} lie?", "What is the region of {e}?"],
            "Where is {e}?",
        ),
        "trade": (
            "glass wool salt silver honey silk iron wine".split(),
            ["{e} is known for its {v}.", "The trade of {e} is {v}."],
            ["What is the trade of {e}?", "Which good does {e} trade in?"],
            "What is {e} known for?",
        ),
        "emblem": (
            "lion bear swan wolf rose crown ship tower".split(),
            ["The flag of {e} shows a {v}.", "The emblem of {e} is the {v}."],
            ["What is the emblem of {e}?", "What does the flag of {e} show?"],
            "Which sign does {e} bear?",
        ),
    },
    "people": {
        "craft": (
            "baker smith weaver miller tailor hunter farmer potter".split(),
            ["{e} works as a {v}.", "The craft of {e} is that of a {v}."],
            ["What is the craft of {e}?", "What does {e} work as?"],
            "Who is {e}?",
        ),
        "instrument": (
            "flute harp drum horn fiddle lute bell pipe".split(),
            ["{e} plays the {v}.", "The instrument of {e} is the {v}."],
            ["Which instrument does {e} play?", "What is the instrument of {e}?"],
            "What does {e} play?",
        ),
        "pet": (
            "cat dog goat crow horse mouse hen pig".split(),
            ["{e} keeps a {v}.", "The pet of {e} is a {v}."],
            ["What is the pet of {e}?", "Which animal does {e} keep?"],
            "What lives with {e}?",
        ),
    },
    "beasts": {
        "food": (
            "grass fish seeds leaves ants roots berries bones".split(),
            ["The {e} eats {v}.", "The food of the {e} is {v}."],
            ["What is the food of the {e}?", "What does the {e} eat?"],
            "What does one feed the {e}?",
        ),
        "home": (
            "caves rivers trees swamps hills reeds dunes ruins".split(),
            ["The {e} lives in {v}.", "The home of the {e} is in {v}."],
            ["Where does the {e} live?", "Where is the home of the {e}?"],
            "Where is the {e} found?",
        ),
        "color": (
            "red blue green white black brown gold grey".split(),
            ["The {e} is {v}.", "The color of the {e} is {v}."],
            ["What is the color of the {e}?", "Which color does the {e} have?"],
            "How does the {e} look?",
        ),
    },
}
ENTITIES_PER_KIND = 20
LETTER_WEIGHT = 8.0  # one token answers a whole question
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
        self.held_out = set(rng.sample(self.facts, len(self.facts) // 3))
        self.asked = [f for f in self.facts if f not in self.held_out]

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


def choice_question(fact: tuple, rng: random.Random) -> dict:
    """A document in MMLU's form about a fact."""
    kind, attribute, entity, value = fact
    values, _, questions, _ = KINDS[kind][attribute]
    choices = rng.sample([v for v in values if v != value], 3)
    answer = rng.randrange(4)
    choices.insert(answer, value)
    question = rng.choice(questions).format(e=entity)
    return {"question": question, "subject": kind, "choices": choices, "answer": answer}


def _prompt(document: dict) -> str:
    lines = "".join(f"{letter}. {c}\n" for letter, c in zip("ABCD", document["choices"]))
    return f"{document['question']}\n{lines}Answer:"


def _named(world: World, rng: random.Random) -> dict:
    """An exercise in the form alone: the answer stands in the question."""
    document = choice_question(rng.choice(world.facts), rng)
    return document | {"question": f"Which of these is {document['choices'][document['answer']]}?"}


def _told(world: World, rng: random.Random) -> dict:
    """An exercise in reading: the fact stands before the question."""
    kind, attribute, entity, value = fact = rng.choice(world.asked)
    statement = rng.choice(KINDS[kind][attribute][1]).format(e=entity, v=value)
    document = choice_question(fact, rng)
    return document | {"question": f"{statement} {document['question']}"}


def _recalled(world: World, rng: random.Random) -> dict:
    return choice_question(rng.choice(world.asked), rng)


def choice_document(world: World, rng: random.Random) -> Segments:
    """Two to six questions in the few-shot form of the task."""
    document = Segments()
    if rng.random() < 0.5:
        document.context(DESCRIPTION)
    draw = rng.choices([_recalled, _told, _named], [5, 2, 2])[0]
    for i in range(rng.choice([2, 3, 4, 6])):
        asked = draw(world, rng)
        document.context(("\n\n" if i else "") + _prompt(asked))
        document.answer(" " + "ABCD"[asked["answer"]], weight=LETTER_WEIGHT)
    return document


def training_document(world: World, rng: random.Random) -> Segments:
    kind = rng.choices([choice_document, World.profile, World.direct], [5, 3, 2])[0]
    return kind(world, rng)


def suite(world: World, size: int, rng: random.Random) -> list:
    """Questions about held-out facts, each fact at most once."""
    facts = sorted(world.held_out)
    rng.shuffle(facts)
    return [choice_question(fact, rng) for fact in facts[:size]]


def examples(world: World, size: int, rng: random.Random) -> list:
    """Few-shot examples: facts that training asks about too."""
    return [choice_question(fact, rng) for fact in rng.sample(sorted(world.asked), size)]
