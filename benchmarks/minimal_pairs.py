"""Makes assets/minimal_pairs: sentences that differ in one respect, one of which is acceptable.

    python -m benchmarks.minimal_pairs            # write the file anew
    python -m benchmarks.minimal_pairs --sample 5 # print some pairs of each paradigm

Thirteen phenomena, three paradigms each, after the list of BLiMP (arXiv 1912.00582); patterns and
word lists are this project's own. Every word is a whole piece of the shipped English vocabularies
(a test says so, and names four words that a later one spells), so that no side is punished for how
it is spelt, and the two sentences of a pair hold the same words, or the same number of them,
wherever the phenomenon allows it.
"""

import argparse
import json
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

FILE = Path(__file__).resolve().parents[1] / "assets" / "minimal_pairs" / "minimal-pairs.jsonl"
SEED = 1
EACH = 60
"""Pairs of a paradigm."""

Draw = random.Random
Sentences = tuple[str, str]
"""The acceptable one and the other."""
Paradigm = Callable[[Draw], Sentences]
PARADIGMS: dict[str, list[Paradigm]] = {}

# --- words ------------------------------------------------------------------------------------

PEOPLE = [
    ("man", "men"),
    ("woman", "women"),
    ("boy", "boys"),
    ("girl", "girls"),
    ("child", "children"),
    ("friend", "friends"),
    ("officer", "officers"),
    ("farmer", "farmers"),
    ("leader", "leaders"),
    ("manager", "managers"),
    ("citizen", "citizens"),
    ("customer", "customers"),
    ("patient", "patients"),
    ("reader", "readers"),
    ("student", "students"),
    ("expert", "experts"),
]
PERSONS = [
    *(one for one, _ in PEOPLE),
    "teacher",
    "doctor",
    "uncle",
    "aunt",
    "king",
    "queen",
    "lady",
    "captain",
    "driver",
]
HE = ["man", "boy", "father", "brother", "uncle", "king", "gentleman", "husband", "son"]
SHE = ["woman", "girl", "mother", "sister", "aunt", "queen", "lady", "wife", "daughter"]
THINGS = [
    ("house", "houses"),
    ("book", "books"),
    ("tree", "trees"),
    ("ship", "ships"),
    ("letter", "letters"),
    ("picture", "pictures"),
    ("window", "windows"),
    ("story", "stories"),
    ("stone", "stones"),
    ("room", "rooms"),
    ("school", "schools"),
    ("flower", "flowers"),
    ("paper", "papers"),
    ("plan", "plans"),
    ("field", "fields"),
    ("card", "cards"),
    ("egg", "eggs"),
    ("bird", "birds"),
    ("horse", "horses"),
    ("island", "islands"),
]
SOLID = [thing for thing in THINGS if thing[0] not in ("story", "plan")]
STATES = ["tired", "happy", "hungry", "angry", "sad", "late", "ready", "safe", "sick", "proud"]
LOOKS = ["old", "new", "small", "large", "beautiful", "heavy", "strange", "white", "black", "green"]
PLACES = ["garden", "house", "school", "street", "kitchen", "hospital", "forest", "village", "shop"]
WHEN = ["today", "yesterday", "again", "this morning", "last week", "last night", "in the evening"]
# What somebody did to a person, and to a thing that could be any of the things above.
TO_PERSONS = ["saw", "met", "followed", "helped", "watched", "answered", "asked", "remembered"]
TO_THINGS = ["saw", "found", "wanted", "sold", "bought", "watched", "remembered", "noticed"]
CARRIED = ["book", "letter", "picture", "flower", "paper", "card", "egg", "stone", "bag", "coat"]
COUNTS = ["two", "three", "four", "five", "six"]


def paradigm(phenomenon: str) -> Callable[[Paradigm], Paradigm]:
    """Note a paradigm under its phenomenon."""

    def note(made: Paradigm) -> Paradigm:
        PARADIGMS.setdefault(phenomenon, []).append(made)
        return made

    return note


def two(draw: Draw, words: list[str]) -> list[str]:
    """Two different ones."""
    return draw.sample(words, 2)


def forms(draw: Draw, words: list[tuple[str, str]] = PEOPLE) -> tuple[str, str]:
    """The singular and the plural of a noun."""
    return draw.choice(words)


def be(plural: bool, draw: Draw) -> tuple[str, str]:
    """A form of "to be" that agrees, and one that does not."""
    one, many = draw.choice([("is", "are"), ("was", "were")])
    return (many, one) if plural else (one, many)


# --- agreement --------------------------------------------------------------------------------


@paradigm("subject-verb agreement across a phrase")
def of_a_noun(draw: Draw) -> Sentences:
    """The friends of the king are tired."""
    plural = draw.random() < 0.5
    head = draw.choice(["friend", "leader", "officer", "manager", "partner"])
    group = forms(draw)
    right, wrong = be(plural, draw)
    noun = f"{head}s" if plural else head
    start, end = f"The {noun} of the {group[0 if plural else 1]}", draw.choice(STATES)
    return f"{start} {right} {end}.", f"{start} {wrong} {end}."


@paradigm("subject-verb agreement across a phrase")
def near_a_noun(draw: Draw) -> Sentences:
    """The trees behind the house are old."""
    plural = draw.random() < 0.5
    head, other = forms(draw, SOLID), forms(draw, SOLID)
    while other == head:
        other = forms(draw, SOLID)
    right, wrong = be(plural, draw)
    where = draw.choice(["near", "behind", "beside"])
    start = f"The {head[plural]} {where} the {other[not plural]}"
    end = draw.choice(LOOKS[:7])
    return f"{start} {right} {end}.", f"{start} {wrong} {end}."


@paradigm("subject-verb agreement across a phrase")
def there_is(draw: Draw) -> Sentences:
    """There are two birds near the tree."""
    plural = draw.random() < 0.5
    head, place = forms(draw, THINGS), draw.choice(PLACES)
    right, wrong = be(plural, draw)
    much = draw.choice([*COUNTS, "many", "several"]) if plural else "one"
    rest = f"{much} {draw.choice(LOOKS[:4])} {head[plural]} near the {place}"
    return f"There {right} {rest}.", f"There {wrong} {rest}."


@paradigm("subject-verb agreement across a clause")
def that_somebody_knows(draw: Draw) -> Sentences:
    """The boys that the officer knows are late."""
    plural = draw.random() < 0.5
    head, other = forms(draw), forms(draw)
    while other == head:
        other = forms(draw)
    verb = draw.choice(["know", "need", "help", "want"])
    right, wrong = be(plural, draw)
    inner = f"{other[0]} {verb}s" if plural else f"{other[1]} {verb}"
    start, end = f"The {head[plural]} that the {inner}", draw.choice(STATES)
    return f"{start} {right} {end}.", f"{start} {wrong} {end}."


@paradigm("subject-verb agreement across a clause")
def who_saw_them(draw: Draw) -> Sentences:
    """The man who met the students was tired."""
    plural = draw.random() < 0.5
    head, other = forms(draw), forms(draw)
    while other == head:
        other = forms(draw)
    right, wrong = be(plural, draw)
    verb = draw.choice(TO_PERSONS)
    start = f"The {head[plural]} who {verb} the {other[not plural]}"
    end = draw.choice(STATES)
    return f"{start} {right} {end}.", f"{start} {wrong} {end}."


@paradigm("subject-verb agreement across a clause")
def he_and_she(draw: Draw) -> Sentences:
    """The boy and the girl live near the river."""
    one, other = two(draw, PERSONS)
    verb = draw.choice(["live", "work", "play", "help"])
    place = draw.choice(PLACES)
    if draw.random() < 0.5:
        start = f"The {one} and the {other}"
        return f"{start} {verb} near the {place}.", f"{start} {verb}s near the {place}."
    many = draw.choice(PEOPLE)[1]
    start = f"The {one} who knows the {many}"
    return f"{start} {verb}s near the {place}.", f"{start} {verb} near the {place}."


# --- determiners and quantifiers ---------------------------------------------------------------


@paradigm("determiner and noun")
def this_these(draw: Draw) -> Sentences:
    """The man found these letters."""
    plural = draw.random() < 0.5
    thing, person, verb = forms(draw, THINGS), draw.choice(PERSONS), draw.choice(TO_THINGS)
    word = draw.choice(["these", "those"] if plural else ["this", "that"])
    start = f"The {person} {verb} {word}"
    return f"{start} {thing[plural]}.", f"{start} {thing[not plural]}."


@paradigm("determiner and noun")
def this_old(draw: Draw) -> Sentences:
    """The man found these old letters."""
    plural = draw.random() < 0.5
    thing, person, verb = forms(draw, THINGS), draw.choice(PERSONS), draw.choice(TO_THINGS)
    right, wrong = ("these", "this") if plural else ("this", "these")
    if draw.random() < 0.5:
        right, wrong = ("those", "that") if plural else ("that", "those")
    end = f"{draw.choice(LOOKS)} {thing[plural]} {draw.choice(WHEN)}"
    return f"The {person} {verb} {right} {end}.", f"The {person} {verb} {wrong} {end}."


@paradigm("determiner and noun")
def a_or_two(draw: Draw) -> Sentences:
    """The lady bought two white horses."""
    thing, person, verb = forms(draw, THINGS), draw.choice(PERSONS), draw.choice(TO_THINGS)
    count, look = draw.choice([*COUNTS, "many", "several", "both"]), draw.choice(LOOKS)
    start = f"The {person} {verb} {count} {look}"
    return f"{start} {thing[1]}.", f"{start} {thing[0]}."


@paradigm("quantifiers")
def every(draw: Draw) -> Sentences:
    """Every student was tired."""
    person, place = forms(draw), draw.choice(PLACES)
    state, word = draw.choice(STATES), draw.choice(["Every", "Each"])
    right, wrong = be(False, draw)
    rest = f"in the {place}"
    if draw.random() < 0.5:
        many = draw.choice(["All", "Most", "Many", "Some", "Several"])
        right, wrong = wrong, right
        start = f"{many} {person[1]} {rest}"
        return f"{start} {right} {state}.", f"{start} {wrong} {state}."
    start = f"{word} {person[0]} {rest}"
    return f"{start} {right} {state}.", f"{start} {wrong} {state}."


@paradigm("quantifiers")
def there_was_every(draw: Draw) -> Sentences:
    """There was a bird in the garden, not: there was every bird in the garden."""
    thing = forms(draw, [*THINGS, *PEOPLE])[0]
    place, wrong = draw.choice(PLACES), draw.choice(["every", "each"])
    right = draw.choice(["one", "no", "another"])
    tense = draw.choice(["was", "is"])
    return f"There {tense} {right} {thing} in the {place}.", (
        f"There {tense} {wrong} {thing} in the {place}."
    )


@paradigm("quantifiers")
def much_and_many(draw: Draw) -> Sentences:
    """The child drank too much milk, not: too many milk."""
    person = draw.choice(PERSONS)
    mass = draw.choice(["milk", "water", "tea", "coffee", "bread", "sugar", "rice", "snow", "sand"])
    things = draw.choice(THINGS)[1]
    verb = draw.choice(["saw", "found", "bought", "had", "wanted"])
    how = draw.choice(["too", "so", "very"])
    if draw.random() < 0.5:
        return (
            f"The {person} {verb} {how} much {mass}.",
            f"The {person} {verb} {how} many {mass}.",
        )
    return f"The {person} {verb} {how} many {things}.", f"The {person} {verb} {how} much {things}."


# --- anaphors ---------------------------------------------------------------------------------


@paradigm("anaphor agreement")
def gender(draw: Draw) -> Sentences:
    """The king hurt himself."""
    his = draw.random() < 0.5
    person = draw.choice(HE if his else SHE)
    right, wrong = ("himself", "herself") if his else ("herself", "himself")
    verb = draw.choice(["hurt", "saw", "asked", "helped", "saved", "watched", "told"])
    when = draw.choice(WHEN)
    return f"The {person} {verb} {right} {when}.", f"The {person} {verb} {wrong} {when}."


@paradigm("anaphor agreement")
def number(draw: Draw) -> Sentences:
    """The boys hurt themselves."""
    plural = draw.random() < 0.5
    one, many = draw.choice(
        [("man", "men"), ("boy", "boys"), ("girl", "girls"), ("woman", "women")]
    )
    single = "himself" if one in HE else "herself"
    right, wrong = ("themselves", single) if plural else (single, "themselves")
    verb = draw.choice(["hurt", "saw", "asked", "helped", "saved", "watched", "told"])
    start = f"The {many if plural else one} in the {draw.choice(PLACES)} {verb}"
    return f"{start} {right}.", f"{start} {wrong}."


@paradigm("anaphor agreement")
def persons(draw: Draw) -> Sentences:
    """I saw myself in the window."""
    words = {"I": "myself", "You": "yourself", "We": "ourselves", "They": "themselves"}
    who = draw.choice(list(words))
    other = draw.choice([word for name, word in words.items() if name != who])
    verb = draw.choice(["saw", "hurt", "helped", "asked", "told", "saved", "watched"])
    place = draw.choice(PLACES)
    return f"{who} {verb} {words[who]} in the {place}.", f"{who} {verb} {other} in the {place}."


@paradigm("binding")
def local(draw: Draw) -> Sentences:
    """The king said that the lady hurt herself."""
    outer, inner = (HE, SHE) if draw.random() < 0.5 else (SHE, HE)
    right, wrong = ("herself", "himself") if inner is SHE else ("himself", "herself")
    say = draw.choice(["said", "thought", "knew", "believed"])
    verb = draw.choice(["hurt", "saw", "helped", "saved", "watched"])
    start = f"The {draw.choice(outer)} {say} that the {draw.choice(inner)} {verb}"
    return f"{start} {right}.", f"{start} {wrong}."


@paradigm("binding")
def commanded(draw: Draw) -> Sentences:
    """The mother of the boys hurt herself."""
    his = draw.random() < 0.5
    person = draw.choice(HE if his else SHE)
    right = "himself" if his else "herself"
    verb = draw.choice(["hurt", "saw", "helped", "saved", "watched", "told", "asked"])
    many = draw.choice(PEOPLE)[1]
    link = draw.choice(["near the", "behind the", "with the", "of the"])
    start = f"The {person} {link} {many} {verb}"
    return f"{start} {right}.", f"{start} themselves."


@paradigm("binding")
def no_subject(draw: Draw) -> Sentences:
    """The king said that he was tired, not: that himself was tired."""
    his = draw.random() < 0.5
    person = draw.choice(HE if his else SHE)
    right, wrong = ("he", "himself") if his else ("she", "herself")
    say = draw.choice(["said", "thought", "knew", "believed"])
    state = draw.choice(STATES)
    start = f"The {person} {say} that"
    return f"{start} {right} was {state}.", f"{start} {wrong} was {state}."


# --- polarity ---------------------------------------------------------------------------------


@paradigm("negative polarity")
def ever(draw: Draw) -> Sentences:
    """No student has ever been here."""
    person = draw.choice(PERSONS)
    right, wrong = "No", draw.choice(["Some", "The", "This", "One"])
    place = draw.choice(PLACES)
    verb = draw.choice(["been near", "seen", "left", "found"])
    rest = f"{person} has ever {verb} the {place}"
    return f"{right} {rest}.", f"{wrong} {rest}."


@paradigm("negative polarity")
def anything(draw: Draw) -> Sentences:
    """The boy did not see anything."""
    person = draw.choice(PERSONS)
    verb = draw.choice(["see", "say", "find", "eat", "buy", "hear", "remember"])
    word = draw.choice(["anything", "anybody"] if verb in ("see", "find", "hear") else ["anything"])
    when = draw.choice(WHEN)
    modal = draw.choice(["did", "could", "would"])
    right, wrong = f"{modal} not", f"{modal} also"
    start, end = f"The {person}", f"{verb} {word} {when}"
    return f"{start} {right} {end}.", f"{start} {wrong} {end}."


@paradigm("negative polarity")
def scope(draw: Draw) -> Sentences:
    """Nobody that the boy knows has ever left, not: the boy that nobody knows has ever left."""
    person = draw.choice(PERSONS)
    many = draw.choice(PEOPLE)[1]
    end = draw.choice(["been here", "been late", "seen snow", "been angry", "left home"])
    verb = draw.choice(["know", "like", "help", "need", "remember"])
    good = f"No {person} that the {many} {verb} has ever {end}."
    return good, f"The {person} that no {many} {verb} has ever {end}."


# --- movement ---------------------------------------------------------------------------------


@paradigm("islands")
def left_branch(draw: Draw) -> Sentences:
    """Whose book did the man read?"""
    thing, person = draw.choice(CARRIED), draw.choice(PERSONS)
    verb = draw.choice(["find", "want", "buy", "see", "sell", "take", "carry", "remember"])
    word = draw.choice(["Whose", "Which"])
    return f"{word} {thing} did the {person} {verb}?", f"{word} did the {person} {verb} {thing}?"


@paradigm("islands")
def coordination(draw: Draw) -> Sentences:
    """What did the boy find with the ring?, not: what did the boy find and the ring?"""
    person = draw.choice(PERSONS)
    one = draw.choice(CARRIED)
    verb = draw.choice(["find", "want", "buy", "see", "sell", "take", "carry", "send", "hide"])
    good = f"What did the {person} {verb} with the {one}?"
    return good, f"What did the {person} {verb} and the {one}?"


ACTS = [
    ("see", "seeing"),
    ("eat", "eating"),
    ("read", "reading"),
    ("find", "finding"),
    ("take", "taking"),
    ("write", "writing"),
    ("hear", "hearing"),
    ("make", "making"),
]


@paradigm("islands")
def adjunct(draw: Draw) -> Sentences:
    """What did the man see before leaving the house?"""
    person, place = draw.choice(PERSONS), draw.choice(PLACES)
    plain, doing = draw.choice(ACTS)
    when, start = draw.choice(["before", "after", "without"]), f"What did the {person}"
    good = f"{start} {plain} {when} leaving the {place}?"
    return good, f"{start} leave the {place} {when} {doing}?"


@paradigm("filler and gap")
def what_or_that(draw: Draw) -> Sentences:
    """The lady knows what the man found, not: the lady knows that the man found."""
    one, other = two(draw, PERSONS)
    know = draw.choice(["knows", "knew", "remembered", "forgot", "said", "showed"])
    verb = draw.choice(["found", "wanted", "bought", "carried", "sold", "made", "chose", "lost"])
    start, end = f"The {one} {know}", f"the {other} {verb}"
    return f"{start} what {end}.", f"{start} that {end}."


@paradigm("filler and gap")
def that_or_what(draw: Draw) -> Sentences:
    """The lady knows that the man found the ring, not: knows what the man found the ring."""
    one, other = two(draw, PERSONS)
    know = draw.choice(["knows", "knew", "remembered", "forgot", "said", "noticed"])
    verb = draw.choice(["found", "wanted", "bought", "carried", "sold", "chose", "lost"])
    start, end = f"The {one} {know}", f"the {other} {verb} the {draw.choice(CARRIED)}"
    return f"{start} that {end}.", f"{start} what {end}."


@paradigm("filler and gap")
def gap_is_open(draw: Draw) -> Sentences:
    """The book that the boy found last week is old, not: that the boy found the card is old."""
    person, thing = draw.choice(PERSONS), draw.choice(CARRIED)
    other = draw.choice([each for each in CARRIED if each != thing])
    verb = draw.choice(["found", "wanted", "bought", "carried", "sold", "chose", "lost"])
    look, time = draw.choice(LOOKS), draw.choice(["last week", "last night", "this morning"])
    start, end = f"The {thing} that the {person} {verb}", f"was {look}."
    return f"{start} {time} {end}", f"{start} the {other} {end}"


# --- ellipsis and forms -----------------------------------------------------------------------


@paradigm("ellipsis")
def noun_left_out(draw: Draw) -> Sentences:
    """The man bought one old house and the lady bought three."""
    one, other = two(draw, PERSONS)
    thing, verb, look = forms(draw, THINGS)[0], draw.choice(TO_THINGS), draw.choice(LOOKS)
    count = draw.choice(["two", "three", "four", "several"])
    good = f"The {one} {verb} one {look} {thing} and the {other} {verb} {count}."
    return good, f"The {one} {verb} one {thing} and the {other} {verb} {count} {look}."


@paradigm("ellipsis")
def verb_left_out(draw: Draw) -> Sentences:
    """The boy was late and the girl was too, not: and the girl did too."""
    one, other = two(draw, PERSONS)
    if draw.random() < 0.5:
        start = f"The {one} was {draw.choice(STATES)} and the {other}"
        return f"{start} was too.", f"{start} did too."
    verb = draw.choice(["left", "laughed", "came", "waited", "spoke", "slept", "smiled", "worked"])
    start = f"The {one} {verb} {draw.choice(WHEN[:3])} and the {other}"
    return f"{start} did too.", f"{start} was too."


@paradigm("ellipsis")
def modal_left_out(draw: Draw) -> Sentences:
    """The boy can swim but the girl cannot."""
    one, other = two(draw, PERSONS)
    modal = draw.choice(["can", "will", "should", "must"])
    verb = draw.choice(["sing", "come", "wait", "stay", "leave", "speak", "work", "help"])
    start = f"The {one} {modal} {verb} but the {other}"
    return f"{start} {modal} not.", f"{start} {verb} not."


IRREGULAR = [
    ("went", "gone", "home"),
    ("took", "taken", "the book"),
    ("gave", "given", "an answer"),
    ("wrote", "written", "a letter"),
    ("spoke", "spoken", "to the boy"),
    ("fell", "fallen", "into the river"),
    ("knew", "known", "the answer"),
    ("saw", "seen", "the mountain"),
    ("began", "begun", "the story"),
    ("broke", "broken", "the window"),
    ("drove", "driven", "the car"),
    ("chose", "chosen", "the picture"),
    ("drew", "drawn", "a map"),
    ("drank", "drunk", "the milk"),
    ("did", "done", "the work"),
]


@paradigm("irregular forms")
def past(draw: Draw) -> Sentences:
    """The boy broke the window."""
    simple, part, rest = draw.choice(IRREGULAR)
    person, when = draw.choice(PERSONS), draw.choice(["yesterday", "last night", "last week"])
    return f"The {person} {simple} {rest} {when}.", f"The {person} {part} {rest} {when}."


@paradigm("irregular forms")
def perfect(draw: Draw) -> Sentences:
    """The boy has broken the window."""
    simple, part, rest = draw.choice(IRREGULAR)
    person, word = draw.choice(PERSONS), draw.choice(["has", "had", "has never", "had already"])
    return f"The {person} {word} {part} {rest}.", f"The {person} {word} {simple} {rest}."


@paradigm("irregular forms")
def passive(draw: Draw) -> Sentences:
    """The window was broken by the boy."""
    choices = [(s, p, r) for s, p, r in IRREGULAR if r.startswith(("the ", "a ", "an ")) and s]
    simple, part, rest = draw.choice(choices)
    person = draw.choice(PERSONS)
    thing = "The " + rest.split(" ", 1)[1]
    return f"{thing} was {part} by the {person}.", f"{thing} was {simple} by the {person}."


# --- verbs and what they take ------------------------------------------------------------------

INTRANSITIVE = ["arrived", "smiled", "laughed", "slept", "fell", "waited", "died", "came", "cried"]


@paradigm("argument structure")
def object_or_none(draw: Draw) -> Sentences:
    """The officer found the lady, not: the officer smiled the lady."""
    one, other = two(draw, PERSONS)
    right, wrong = draw.choice(TO_PERSONS), draw.choice(INTRANSITIVE)
    when = draw.choice(WHEN)
    return f"The {one} {right} the {other} {when}.", f"The {one} {wrong} the {other} {when}."


@paradigm("argument structure")
def passive_of_transitive(draw: Draw) -> Sentences:
    """The lady was followed by the boy, not: the lady was arrived by the boy."""
    one, other = two(draw, PERSONS)
    right = draw.choice(["seen", "met", "followed", "helped", "watched", "answered", "asked"])
    wrong = draw.choice(["arrived", "smiled", "laughed", "slept", "waited", "died", "appeared"])
    start, end = f"The {one} was", f"by the {other}"
    return f"{start} {right} {end}.", f"{start} {wrong} {end}."


@paradigm("argument structure")
def two_objects(draw: Draw) -> Sentences:
    """The boy gave the lady a book, not: the boy said the lady a book."""
    one, other = two(draw, PERSONS)
    thing = draw.choice([each for each in CARRIED if each != "egg"])
    right = draw.choice(["gave", "sent", "showed", "offered", "bought"])
    wrong = draw.choice(["said", "explained", "described", "carried", "noticed"])
    end = f"the {other} a {thing}"
    return f"The {one} {right} {end}.", f"The {one} {wrong} {end}."


RAISING = ["seemed", "appeared", "began", "continued", "happened", "started"]
CONTROL = ["tried", "decided", "agreed", "wanted", "wished", "refused", "offered"]


@paradigm("control and raising")
def there_seemed(draw: Draw) -> Sentences:
    """There seemed to be a problem, not: there tried to be a problem."""
    what = draw.choice(["a problem", "a mistake", "a fire", "some trouble", "an answer", "a plan"])
    place = draw.choice(PLACES)
    right, wrong = draw.choice(RAISING), draw.choice(CONTROL)
    end = f"to be {what} in the {place}"
    return f"There {right} {end}.", f"There {wrong} {end}."


@paradigm("control and raising")
def likely_and_eager(draw: Draw) -> Sentences:
    """There is likely to be snow, not: there is eager to be snow."""
    what = draw.choice(["snow", "rain", "trouble", "a fire", "a storm", "a meeting", "a fight"])
    when = draw.choice(["today", "tomorrow", "tonight", "this week", "in the morning"])
    right = draw.choice(["likely", "certain", "sure", "bound"])
    wrong = draw.choice(["eager", "glad", "able", "afraid", "unable"])
    tense = draw.choice(["is", "was"])
    return f"There {tense} {right} to be {what} {when}.", (
        f"There {tense} {wrong} to be {what} {when}."
    )


@paradigm("control and raising")
def easy_to_see(draw: Draw) -> Sentences:
    """The island is easy to see, not: the island is likely to see."""
    thing = draw.choice(["island", "mountain", "bridge", "river", "picture", "house", "boat"])
    verb = draw.choice(["see", "find", "reach", "forget", "remember", "describe"])
    right = draw.choice(["easy", "hard", "difficult", "impossible"])
    wrong = draw.choice(["likely", "certain", "able", "sure"])
    tense, look = draw.choice(["is", "was"]), draw.choice(["old", "small", "large", "beautiful"])
    start = f"The {look} {thing} {tense}"
    return f"{start} {right} to {verb}.", f"{start} {wrong} to {verb}."


# --- the file ---------------------------------------------------------------------------------


def pairs(seed: int = SEED, each: int = EACH) -> Iterator[dict[str, str]]:
    """All pairs, ``each`` of a paradigm, no two the same."""
    for phenomenon, paradigms in PARADIGMS.items():
        for made in paradigms:
            draw = random.Random(f"{seed},{made.__name__}")
            seen: set[Sentences] = set()
            while len(seen) < each:
                pair = made(draw)
                if pair not in seen:
                    seen.add(pair)
                    yield {"phenomenon": phenomenon, "good": pair[0], "bad": pair[1]}


def lines() -> str:
    """The file's text."""
    return "".join(json.dumps(pair, ensure_ascii=False) + "\n" for pair in pairs())


def main() -> None:
    """Write the file, or print a sample."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--sample", type=int, metavar="N", help="print N pairs of each paradigm")
    sample = parser.parse_args().sample
    if sample is None:
        FILE.write_text(lines(), encoding="utf-8")
        return
    for pair in pairs(each=sample):
        sys.stdout.write("{phenomenon:42} {good}  *{bad}\n".format(**pair))


if __name__ == "__main__":
    main()
