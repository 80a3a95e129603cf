"""A language model behind an endpoint that speaks as OpenAI's does: memory's tasks put to a chat model."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from jidomem.embedder import Embedder, Vector
from jidomem.errors import InvalidRequest, JidomemError, ModelUnavailable
from jidomem.model import Bounds, Known, Learned, Page, Prompt, Segment
from jidomem.models import prompts, replies
from jidomem.models.dialogue import at_least_one, so_far
from jidomem.models.endpoint import Endpoint, Unavailable
from jidomem.models.replies import Malformed
from jidomem.models.summary import cut

T = TypeVar("T")
Message = dict[str, str]
#: What is sent with every request unless other options are given.
OPTIONS: Mapping[str, Any] = {"temperature": 0, "max_tokens": 4_000}
#: Signs of dialogue that are shown at once, and the fewest that will do.
ROOM, LEAST_ROOM = 24_000, 1_000
#: Facts that are rated in one request.
AT_ONCE = 50
_PATH = "/chat/completions"
#: What a model that reasons says before its answer, where its endpoint does not keep the two apart.
_THOUGHT = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
#: What every request has besides, which no option says.
OURS = ("model", "messages", "response_format", "stream", "n")
_AGAIN = "That cannot be used: {}. Do the task again, and answer with the JSON object alone."


class ChatModel:
    """Reads dialogue by asking *model* at *endpoint*; vectors are those of *embedder*.

    *options* go with every request (`OPTIONS`); *room* is how many signs of dialogue are shown at once, of long pages
    their beginnings. Without *json_mode* the endpoint is not told to answer in JSON, for those that do not know how.
    """

    #: Whoever asks it waits for another machine.
    is_remote = True

    def __init__(
        self,
        endpoint: Endpoint | Unavailable,
        model: str,
        embedder: Embedder,
        *,
        bounds: Bounds | None = None,
        options: Mapping[str, Any] = OPTIONS,
        room: int = ROOM,
        json_mode: bool = True,
    ) -> None:
        if not isinstance(model, str) or not model.strip():
            raise InvalidRequest(f"model={model!r} is no name", hint='give the name the endpoint knows: "gpt-4o-mini"')
        if ours := [name for name in options if name in OURS]:
            raise InvalidRequest(f"the option {ours[0]!r} is set by the client", hint=f"leave {ours[0]} out of options")
        if isinstance(room, bool) or not isinstance(room, int) or room < LEAST_ROOM:
            raise InvalidRequest(f"room={room!r} is too little", hint=f"give a number from {LEAST_ROOM}")
        self._endpoint, self._model, self._embedder = endpoint, model, embedder
        self._bounds, self._options, self._room, self._json_mode = bounds or Bounds(), dict(options), room, json_mode

    def __repr__(self) -> str:
        return f"ChatModel({self.name!r})"

    @property
    def name(self) -> str:
        """Return the model and where it is."""
        return f"{self._model} at {self._endpoint.address}"

    @property
    def why(self) -> JidomemError | None:
        """Return why it cannot be asked at all, None where that is not known."""
        return self._endpoint.why if isinstance(self._endpoint, Unavailable) else None

    @property
    def embedder(self) -> Embedder:
        """Return what makes its vectors."""
        return self._embedder

    def generate_meta_chain(self, pages: Sequence[Page]) -> str:
        """Return the summary of the talk so far, brought up to date by the pages said since."""
        chain, new = so_far(pages)
        prompt = prompts.chain_prompt(new, chain, self._bounds, self._room)
        return self._read(prompt, lambda found: replies.chain(found, self._bounds))

    def continues(self, previous: Page, page: Page) -> bool:
        """Return whether the model finds that *page* goes on with *previous*."""
        return self._read(prompts.continues_prompt(previous, page, self._room), replies.continues)

    def calculate_embedding(self, text: str) -> Vector:
        """Return the vector of *text*."""
        return self.calculate_embeddings([text])[0]

    def calculate_embeddings(self, texts: Sequence[str]) -> Sequence[Vector]:
        """Return one vector for each of *texts*, in their order."""
        return self._embedder.generate(texts) if texts else []

    def extract_keywords(self, text: str) -> tuple[str, ...]:
        """Return the keywords the model finds; an empty text has none, and nothing is sent."""
        if not text.strip():
            return ()
        prompt = prompts.keywords_prompt(text, self._bounds, self._room)
        return self._read(prompt, lambda found: replies.keywords(found, self._bounds))

    def generate_segment_summary(self, pages: Sequence[Page]) -> str:
        """Return what *pages* are about, of two topics at most, each behind its theme."""
        prompt = prompts.summary_prompt(at_least_one(pages), self._bounds, self._room)
        return self._read(prompt, lambda found: replies.summary(found, self._bounds))

    def extract_traits(self, segment: Segment) -> Learned:
        """Return the facts and traits the model finds; where there is no page nothing is sent."""
        pages = segment.pages
        if not pages:
            return Learned()
        prompt = prompts.traits_prompt(pages, self._bounds, self._room)
        return self._read(prompt, lambda found: replies.learned(found, self._bounds, len(pages)))

    def rate_importance(self, facts: Sequence[str]) -> tuple[float, ...]:
        """Return how the model rates each of *facts*, asked of `AT_ONCE` at a time; of none nothing is sent."""
        rated = [self._rated(facts[start : start + AT_ONCE]) for start in range(0, len(facts), AT_ONCE)]
        return tuple(score for scores in rated for score in scores)

    def generate_final_prompt(
        self,
        query: str,
        stm: Sequence[Page],
        mtm: Sequence[Page],
        lpm: Sequence[Known],
        system_memory: Sequence[str],
    ) -> Prompt:
        """Return *query* and what each tier has on it as what a language model is asked; nothing is sent."""
        return prompts.final_prompt(query, stm, mtm, lpm, system_memory)

    def answer(self, prompt: Prompt) -> str:
        """Return what the model answers to *prompt*, as it is."""
        return self._said(_messages(prompt), {}).strip()

    def _rated(self, facts: Sequence[str]) -> tuple[float, ...]:
        prompt = prompts.importance_prompt(facts, self._room)
        return self._read(prompt, lambda found: replies.scores(found, len(facts)))

    def _read(self, prompt: Prompt, read: Callable[[Mapping[str, Any]], T]) -> T:
        """Return what *read* makes of the answer; one that is malformed is asked for once more, with its fault told."""
        messages, form = _messages(prompt), {"response_format": {"type": "json_object"}} if self._json_mode else {}
        said = self._said(messages, form)
        try:
            return read(replies.parsed(said))
        except Malformed as fault:
            again = [_of("assistant", cut(said, self._room)), _of("user", _AGAIN.format(fault))]
        try:
            return read(replies.parsed(self._said([*messages, *again], form)))
        except Malformed as fault:
            raise ModelUnavailable(
                f"{self.name} answered twice with what cannot be used: {fault}",
                hint="use a model that keeps to the form it is asked for, or the offline one",
            ) from None

    def _said(self, messages: list[Message], form: Mapping[str, Any]) -> str:
        body = {**self._options, **form, "model": self._model, "messages": messages}
        choice = _first(self._endpoint.post(_PATH, body))
        if choice is None:
            raise self._unusable("answered with no choice", "see that the endpoint serves chat completions")
        message, reason = choice.get("message"), choice.get("finish_reason")
        if reason == "length":
            raise self._unusable("was cut off in its answer", "raise max_tokens in options, or give less at once")
        if not isinstance(message, dict) or message.get("refusal") or reason == "content_filter":
            refused = isinstance(message, dict)
            raise self._unusable("refused to answer" if refused else "answered with no message", "ask another model")
        said = message.get("content")
        said = _THOUGHT.sub("", said) if isinstance(said, str) else ""
        if not said.strip():
            raise self._unusable("answered nothing", "see that the model answers in text")
        return said

    def _unusable(self, what: str, hint: str) -> ModelUnavailable:
        return ModelUnavailable(f"{self.name} {what}", hint=hint)


def _messages(prompt: Prompt) -> list[Message]:
    return [_of("system", prompt.system), _of("user", prompt.user)]


def _of(role: str, words: str) -> Message:
    return {"role": role, "content": words}


def _first(answer: Mapping[str, Any]) -> Mapping[str, Any] | None:
    choices = answer.get("choices")
    return choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else None
