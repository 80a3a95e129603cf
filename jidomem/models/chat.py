"""The chat model: the tasks of memory as prompts of an OpenAI endpoint, with checked answers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import orjson

from jidomem.base.words import one_line
from jidomem.errors import InvalidRequest, JidomemError, ModelUnavailable
from jidomem.models import offline
from jidomem.models.embeddings import at_least_one, so_far
from jidomem.models.endpoint import EndpointUnavailable, ModelEndpoint
from jidomem.models.keywords import cut, is_private
from jidomem.records.interfaces import (
    AGENT,
    OBJECT,
    DialogueTurn,
    Embedder,
    Fact,
    Learned,
    ModelPrompt,
    OutputLimits,
    Segment,
    Trait,
)

T = TypeVar("T")
#: The most characters of an answer, and of a keyword.
MAX_ANSWER_CHARS, MAX_KEYWORD_CHARS = 200_000, 60
_FENCE = re.compile(r"```(?:json)?\s*\n(.*)\n\s*```", re.DOTALL)


#: What a new memory is to another one, as a model judges it; and the most characters of its reason.
RELATIONS, LONGEST_REASON = ("repeats", "contradicts", "separate"), 300


class PairJudgement(NamedTuple):
    """The judgement of a model: the `relation` of a new memory to another one, one of RELATIONS, and the `reason`."""

    relation: str
    reason: str


class MalformedAnswer(ValueError):
    """A malformed answer; the message names the fault, and quotes nothing of the answer."""


def parsed(answer: str) -> Mapping[str, Any]:
    r"""Return the JSON object in *answer*, with or without a code fence; raise MalformedAnswer for any other answer.

    >>> parsed('```json\n{"continues": true}\n```')
    {'continues': True}
    """
    if len(answer) > MAX_ANSWER_CHARS:
        raise MalformedAnswer(f"it has more than {MAX_ANSWER_CHARS:,} characters")
    fenced = _FENCE.fullmatch(answer.strip())
    try:
        value = orjson.loads(fenced[1] if fenced else answer)
    except ValueError:
        raise MalformedAnswer("it is no JSON") from None
    if not isinstance(value, dict):
        raise MalformedAnswer("it is not a JSON object")
    return value


def parse_chain(reply: Mapping[str, Any], bounds: OutputLimits) -> str:
    """Return the summary of a dialogue."""
    return cut(_text(reply, "chain", "chain"), bounds.chain)


def parse_continues(reply: Mapping[str, Any]) -> bool:
    """Return whether a dialogue continues."""
    return _truth(reply, "continues", "continues")


def keywords(reply: Mapping[str, Any], bounds: OutputLimits) -> tuple[str, ...]:
    """Return distinct keywords in lower case, without overlong ones. Raises MalformedAnswer."""
    listed = _list(reply, "keywords")
    if not all(isinstance(word, str) for word in listed):
        raise MalformedAnswer("keywords has a value that is not a text")
    words = dict.fromkeys(one_line(word).casefold() for word in listed)
    return tuple(word for word in words if 0 < len(word) <= MAX_KEYWORD_CHARS)[: bounds.keywords]


def summary(reply: Mapping[str, Any], bounds: OutputLimits) -> str:
    """Return the summaries of up to two topics as one text, each after its theme; raises MalformedAnswer for none."""
    topics = list(_objects(reply, "topics"))[:2]
    if not topics:
        raise MalformedAnswer("topics is empty")
    texts = [
        ": ".join(_text(topic, name, f"{place}.{name}") for name in ("theme", "summary")) for place, topic in topics
    ]
    return cut(" ".join(texts), bounds.summary)


def learned(reply: Mapping[str, Any], bounds: OutputLimits, pages: int) -> Learned:
    """Return facts and traits within *bounds*; those that look private are marked so, whatever the model answered."""
    facts = [_fact(place, fact, bounds, pages) for place, fact in _objects(reply, "facts")]
    traits = [_trait(place, trait, bounds, pages) for place, trait in _objects(reply, "traits")]
    return Learned(tuple(facts[: bounds.facts]), tuple(traits[: bounds.traits]))


def pair_judgement(reply: Mapping[str, Any]) -> PairJudgement:
    """Return how a new memory relates to another one; raises MalformedAnswer for another relation, or no reason."""
    relation = reply.get("relation")
    if relation not in RELATIONS:
        raise MalformedAnswer(f"relation is none of {', '.join(RELATIONS)}")
    return PairJudgement(relation, cut(_text(reply, "reason", "reason"), LONGEST_REASON))


def scores(reply: Mapping[str, Any], count: int) -> tuple[float, ...]:
    """Return *count* numbers from 0 to 1; raises MalformedAnswer for other values or another count."""
    listed = _list(reply, "scores")
    if len(listed) != count:
        raise MalformedAnswer(f"scores has {len(listed)} numbers for {count} facts")
    if not all(type(score) in (int, float) and 0 <= score <= 1 for score in listed):
        raise MalformedAnswer("scores has a value that is not a number from 0 to 1")
    return tuple(map(float, listed))


def _fact(place: str, values: Mapping[str, Any], bounds: OutputLimits, pages: int) -> Fact:
    text = cut(_text(values, "text", f"{place}.text"), bounds.statement)
    return _validated(place, lambda: Fact(text, **_common_fields(place, values, text, pages)))


def _trait(place: str, values: Mapping[str, Any], bounds: OutputLimits, pages: int) -> Trait:
    name, value = (cut(_text(values, each, f"{place}.{each}"), bounds.statement) for each in ("name", "value"))
    return _validated(place, lambda: Trait(name, value, **_common_fields(place, values, f"{name} {value}", pages)))


def _common_fields(place: str, values: Mapping[str, Any], text: str, pages: int) -> dict[str, Any]:
    page = values.get("page")
    if page is not None and (type(page) is not int or not 0 <= page < pages):
        raise MalformedAnswer(f"{place}.page is not the number of a page")
    private = _truth(values, "private", f"{place}.private") if "private" in values else False
    return {"confidence": values.get("confidence"), "subject": values.get("subject"), "page": page,
            "private": private or is_private(text)}  # fmt: skip


def _validated(place: str, make: Callable[[], T]) -> T:
    try:
        return make()
    except InvalidRequest:
        raise MalformedAnswer(
            f"{place} has a subject other than {OBJECT!r} and {AGENT!r}, or no confidence from 0 to 1"
        ) from None


def _list(reply: Mapping[str, Any], name: str) -> list[Any]:
    value = reply.get(name)
    if not isinstance(value, list):
        raise MalformedAnswer(f"{name} is not a list")
    return value


def _objects(reply: Mapping[str, Any], name: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for number, value in enumerate(_list(reply, name)):
        if not isinstance(value, dict):
            raise MalformedAnswer(f"{name}[{number}] is not an object")
        yield f"{name}[{number}]", value


def _text(values: Mapping[str, Any], name: str, place: str) -> str:
    text = values.get(name)
    if not isinstance(text, str) or not one_line(text):
        raise MalformedAnswer(f"{place} is not a text, or is blank")
    return one_line(text)


def _truth(values: Mapping[str, Any], name: str, place: str) -> bool:
    truth = values.get(name)
    if not isinstance(truth, bool):
        raise MalformedAnswer(f"{place} is neither true nor false")
    return truth


OPTIONS: Mapping[str, Any] = {"temperature": 0, "max_tokens": 4_000}
#: The default number of characters of dialogue in one request, and its minimum.
ROOM, LEAST_ROOM = 24_000, 1_000
#: Facts that are rated in one request.
AT_ONCE = 50
_PATH = "/chat/completions"
#: The reasoning before an answer, where the endpoint does not separate the two.
_THOUGHT = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
#: The fields of a request that the client sets itself.
OURS = ("model", "messages", "response_format", "stream", "n")
_AGAIN = "That cannot be used: {}. Do the task again, and answer with the JSON object alone."


class ChatModel(offline.ModelBase):
    """Analyses dialogue by requests to *model* at *endpoint*; vectors are those of *embedder*.

    *options* are part of every request (`OPTIONS`); *room* is the number of characters of dialogue in one request, for
    which long pages are cut. *json_mode* requests an answer in JSON; switch it off for endpoints that lack it.
    """

    #: A call sends a request to another machine.
    is_remote = True

    def __init__(
        self,
        endpoint: ModelEndpoint | EndpointUnavailable,
        model: str,
        embedder: Embedder,
        *,
        bounds: OutputLimits | None = None,
        options: Mapping[str, Any] = OPTIONS,
        room: int = ROOM,
        json_mode: bool = True,
    ) -> None:
        if not isinstance(model, str) or not model.strip():
            raise InvalidRequest(
                f"model={model!r} is not a name", hint='give the name the endpoint knows: "gpt-4o-mini"'
            )
        if reserved := [name for name in options if name in OURS]:
            raise InvalidRequest(
                f"the option {reserved[0]!r} is set by the client", hint=f"leave {reserved[0]} out of options"
            )
        if isinstance(room, bool) or not isinstance(room, int) or room < LEAST_ROOM:
            raise InvalidRequest(f"room={room!r} is too little", hint=f"give a number from {LEAST_ROOM}")
        super().__init__(embedder, bounds)
        self._endpoint, self._model = endpoint, model
        self._options, self._room, self._json_mode = dict(options), room, json_mode

    def __repr__(self) -> str:
        return f"ChatModel({self.name!r})"

    @property
    def name(self) -> str:
        """Return the model and the address of its endpoint."""
        return f"{self._model} at {self._endpoint.address}"

    @property
    def model(self) -> str:
        """Return the model, as its endpoint names it."""
        return self._model

    @property
    def why(self) -> JidomemError | None:
        """Return the reason why the endpoint cannot be used, None if none is known."""
        return self._endpoint.why if isinstance(self._endpoint, EndpointUnavailable) else None

    def generate_meta_chain(self, pages: Sequence[DialogueTurn]) -> str:
        """Return the summary of the dialogue so far, updated with the pages since."""
        chain, new = so_far(pages)
        prompt = offline.chain_prompt(new, chain, self._bounds, self._room)
        return self._read(prompt, lambda reply: parse_chain(reply, self._bounds))

    def continues(self, previous: DialogueTurn, page: DialogueTurn) -> bool:
        """Return whether *page* continues *previous*, as judged by the model."""
        return self._read(offline.continues_prompt(previous, page, self._room), parse_continues)

    def extract_keywords(self, text: str) -> tuple[str, ...]:
        """Return the keywords found by the model; none for a blank text, without a request."""
        if not text.strip():
            return ()
        prompt = offline.keywords_prompt(text, self._bounds, self._room)
        return self._read(prompt, lambda reply: keywords(reply, self._bounds))

    def generate_segment_summary(self, pages: Sequence[DialogueTurn]) -> str:
        """Return the summary of *pages*, of two topics at most, each after its theme."""
        prompt = offline.summary_prompt(at_least_one(pages), self._bounds, self._room)
        return self._read(prompt, lambda reply: summary(reply, self._bounds))

    def extract_traits(self, segment: Segment) -> Learned:
        """Return the facts and traits found by the model; none without pages, without a request."""
        pages = segment.pages
        if not pages:
            return Learned()
        prompt = offline.traits_prompt(pages, self._bounds, self._room)
        return self._read(prompt, lambda reply: learned(reply, self._bounds, len(pages)))

    def rate_importance(self, facts: Sequence[str]) -> tuple[float, ...]:
        """Return the rating of each of *facts*, `AT_ONCE` of them a request."""
        rated = [self._rate_batch(facts[start : start + AT_ONCE]) for start in range(0, len(facts), AT_ONCE)]
        return tuple(score for scores in rated for score in scores)

    def _rate_batch(self, facts: Sequence[str]) -> tuple[float, ...]:
        prompt = offline.importance_prompt(facts, self._room)
        return self._read(prompt, lambda reply: scores(reply, len(facts)))

    def compare(self, new: str, other: str) -> PairJudgement:
        """Return how the text of a *new* memory relates to that of an *other* one; raises ModelUnavailable."""
        return self._read(offline.comparison_prompt(new, other, self._room), pair_judgement)

    def answer(self, prompt: ModelPrompt) -> str:
        """Return the unchanged answer of the model to *prompt*."""
        return self._completion(_messages(system=prompt.system, user=prompt.user), {}).strip()

    def _read(self, prompt: ModelPrompt, read: Callable[[Mapping[str, Any]], T]) -> T:
        """Return the parsed answer; after a malformed one, ask the model once more, with the fault."""
        messages = _messages(system=prompt.system, user=prompt.user)
        form = {"response_format": {"type": "json_object"}} if self._json_mode else {}
        answer = self._completion(messages, form)
        try:
            return read(parsed(answer))
        except MalformedAnswer as fault:
            messages += _messages(assistant=cut(answer, self._room), user=_AGAIN.format(fault))
        try:
            return read(parsed(self._completion(messages, form)))
        except MalformedAnswer as fault:
            raise ModelUnavailable(
                f"{self.name} gave two unusable answers: {fault}",
                hint="use a model that follows the required form, or the offline one",
            ) from None

    def _completion(self, messages: list[dict[str, str]], form: Mapping[str, Any]) -> str:
        body = {**self._options, **form, "model": self._model, "messages": messages}
        match self._endpoint.post(_PATH, body):
            case {"choices": [dict(choice), *_]}:
                message, reason = choice.get("message"), choice.get("finish_reason")
            case _:
                raise self._unusable("answered with no choice", "check that the endpoint serves chat completions")
        if reason == "length":
            raise self._unusable("was cut off in its answer", "raise max_tokens in options, or give less text")
        if not isinstance(message, dict) or message.get("refusal") or reason == "content_filter":
            refused = isinstance(message, dict)
            raise self._unusable("refused to answer" if refused else "answered with no message", "ask another model")
        answer = message.get("content")
        answer = _THOUGHT.sub("", answer) if isinstance(answer, str) else ""
        if not answer.strip():
            raise self._unusable("answered nothing", "check that the model answers in text")
        return answer

    def _unusable(self, what: str, hint: str) -> ModelUnavailable:
        return ModelUnavailable(f"{self.name} {what}", hint=hint)


def _messages(**texts: str) -> list[dict[str, str]]:
    return [{"role": role, "content": text} for role, text in texts.items()]
