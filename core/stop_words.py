"""English function words, put together from the rules by which they are formed.

The set is the one by which the released pairwise similarities were counted: pronouns, auxiliaries with their
contractions and the pieces a tokenizer leaves of them, articles, conjunctions, prepositions, a few adverbs.
"""

from __future__ import annotations

_CONTRACTED_PRONOUNS = {
    "i": "m ve ll d",
    "you": "re ve ll d",
    "he": "s ll d",
    "she": "s ll d",
    "it": "s ll d",
    "we": "re ve ll d",
    "they": "re ve ll d",
}
_PRONOUNS = (
    "me my myself you your yours yourself yourselves him his himself her hers herself its itself "
    "our ours ourselves them their theirs themselves what which who whom this that these those"
)
_AUXILIARIES = "am is are was were be been being have has had having do does did doing can will should"
# Stems that take n't; the bare stem is what remains where the apostrophe is cut off. "ain" stands alone.
_NEGATED = "are could did does do had has have is might must need sha should was were wo would"  # sha(n't), wo(n't)
_OTHER_CONTRACTIONS = "should've that'll"
_PIECES = "s t d m o y ll re ve ma ain"
_LITTLE_WORDS = (
    "a an the and but if or because as until while than nor so "
    "of at by for with about against between into through during before after above below to from up down in out "
    "on off over under again further then once here there when where why how "
    "all any both each few more most other some such no not only own same too very just now"
)


def _build() -> frozenset[str]:
    words = " ".join((_PRONOUNS, _AUXILIARIES, _OTHER_CONTRACTIONS, _PIECES, _LITTLE_WORDS)).split()
    for pronoun, endings in _CONTRACTED_PRONOUNS.items():
        words += [pronoun, *(f"{pronoun}'{ending}" for ending in endings.split())]
    for stem in _NEGATED.split():
        words += [f"{stem}n", f"{stem}n't"]
    return frozenset(words)


STOP_WORDS = _build()
