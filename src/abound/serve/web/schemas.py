"""The shapes of requests and answers, from which the OpenAPI document is made."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, model_validator

from abound.validation import LARGEST as LARGEST_VALUE

TEXT_LENGTH = 100_000
"""Characters of a text."""

BATCH = 10_000
"""Rows of one request."""

LIMIT = 1000
"""Classes of one answer row."""

ENTRIES = 100_000
"""Features of a vector."""

LARGEST = 3e38
"""What a float32 holds."""

Text = Annotated[str, Field(max_length=TEXT_LENGTH, description="What to rank.")]
Identifier = Annotated[
    str, Field(min_length=1, max_length=200, description="Your own name for this request; it comes back in the answer.")
]
Label = Annotated[str, Field(min_length=1, max_length=1000)]
Labels = Annotated[list[Label], Field(min_length=1, max_length=BATCH)]
Score = Annotated[FiniteFloat, Field(ge=-LARGEST, le=LARGEST)]

# The model checks the limits itself, and names the feature.
Value = Annotated[FiniteFloat, Field(json_schema_extra={"minimum": -LARGEST_VALUE, "maximum": LARGEST_VALUE})]


class Strict(BaseModel):
    """Unknown fields and numbers in quotes are errors."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Features(Strict):
    """A sparse vector, for models that were trained on vectors."""

    indices: Annotated[list[Annotated[int, Field(ge=0, le=2**31 - 2)]], Field(max_length=ENTRIES)]
    values: Annotated[list[Value], Field(max_length=ENTRIES)]

    @model_validator(mode="after")
    def _equally_long(self) -> Features:
        if len(self.indices) != len(self.values):
            raise ValueError(f"{len(self.indices)} indices, but {len(self.values)} values")
        return self


class Choice(Strict):
    """How many classes are wanted, and which."""

    limit: Annotated[int, Field(ge=1, le=LIMIT, description="How many classes at most.")] = 5
    threshold: Annotated[Score | None, Field(description="Leave out classes of a lower score.")] = None
    include: Annotated[Labels | None, Field(description="Rank these classes only.")] = None
    exclude: Annotated[Labels | None, Field(description="Leave these classes out.")] = None
    paths: Annotated[bool, Field(description="Say where each class stands in the taxonomy.")] = False
    max_ms: Annotated[
        FiniteFloat | None,
        Field(gt=0, le=600_000, description="Milliseconds after which an answer is of no use; then the status is 503."),
    ] = None


class Item(Strict):
    """One thing to rank: a text, or a vector."""

    id: Identifier | None = None
    text: Text | None = None
    features: Features | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> Item:
        if (self.text is None) == (self.features is None):
            raise ValueError("give either text or features")
        return self


class SuggestRequest(Item, Choice):
    """Rank the classes of one text or vector."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"text": "broken left wrist after a fall", "limit": 3, "id": "a1"}]}
    )


class BatchRequest(Choice):
    """Rank the classes of many texts or vectors."""

    items: Annotated[list[Item], Field(min_length=1, max_length=BATCH)]

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"items": [{"text": "stung by a wasp", "id": "1"}, {"text": "migraine"}]}]}
    )


class ExplainRequest(Item):
    """Rank the classes of one text or vector, and tell why."""

    limit: Annotated[int, Field(ge=1, le=50, description="How many classes at most.")] = 5
    label: Annotated[Label | None, Field(description="Explain this class only, wherever it is ranked.")] = None

    model_config = ConfigDict(json_schema_extra={"examples": [{"text": "allergic to peanuts", "limit": 2}]})


class LearnRequest(Item):
    """Say what is right."""

    labels: Annotated[list[Label], Field(min_length=1, max_length=100, description="The right class or classes.")]
    new_class: Annotated[bool, Field(description="A label that the model does not know is a new class.")] = False
    title: Annotated[str | None, Field(max_length=1000, description="What to show for a new class.")] = None
    wait: Annotated[bool, Field(description="Answer only once the correction counts.")] = False

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"text": "peanut trouble", "labels": ["Z91"], "id": "2026-000017"}]}
    )


class Node(BaseModel):
    """A node of the taxonomy."""

    label: str
    title: str


class Suggestion(Node):
    """A class and its score."""

    score: float
    probability: float | None = Field(None, description="Of a calibrated model: how likely the class is.")
    path: list[Node] | None = Field(None, description="The nodes above, from the top.")


class SuggestAnswer(BaseModel):
    """The best classes, best first."""

    id: str | None = None
    version: str
    suggestions: list[Suggestion]


class ItemAnswer(BaseModel):
    """The best classes of one item."""

    id: str | None = None
    suggestions: list[Suggestion]


class BatchAnswer(BaseModel):
    """The best classes of each item, in the order of the request."""

    version: str
    items: list[ItemAnswer]


class VoteAnswer(BaseModel):
    """A word or feature that votes for a class."""

    feature: str
    value: float
    places: list[list[int]] = Field(description="Where it stands in the text: from, to, in characters.")


class Reason(Suggestion):
    """A class and the words that vote for it."""

    votes: list[VoteAnswer]


class ExplainAnswer(BaseModel):
    """The best classes and why they are."""

    id: str | None = None
    version: str
    classes: list[Reason]


class LearnAnswer(BaseModel):
    """The correction is in the journal."""

    id: str | None = None
    entry: int
    learned: bool = Field(description="Whether it counts already; if not, it will within a second.")


class ClassesAnswer(BaseModel):
    """Classes that were found."""

    classes: list[Node]


class LearnedEntry(BaseModel):
    """A correction, without its text."""

    entry: int
    at: str
    labels: list[str]
    was_right: bool | None
    tries: int | None


class LearningAnswer(BaseModel):
    """What a model has learned since it was trained."""

    possible: bool
    accepted: bool
    corrections: int
    waiting: int
    recent: list[LearnedEntry]


class ModelAnswer(BaseModel):
    """A model."""

    name: str
    version: str
    learner: str
    takes: Literal["texts", "vectors"]
    first_feature: int
    classes: int
    features: int
    edges: int
    bytes: int
    taxonomy: bool
    suggestions: int
    rate: float = Field(description="Suggestions a second over the last minute.")
    learning: LearningAnswer


class ModelsAnswer(BaseModel):
    """All models."""

    models: list[ModelAnswer]


class Fault(BaseModel):
    """What is wrong with one field."""

    field: str
    detail: str


class Problem(BaseModel):
    """An error, as RFC 9457 has it."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[Fault] | None = None


class Tensor(BaseModel):
    """An input tensor."""

    model_config = ConfigDict(strict=True)

    name: Annotated[str, Field(max_length=100)]
    shape: Annotated[list[Annotated[int, Field(ge=0, le=2**31)]], Field(max_length=8)]
    datatype: Literal["BYTES", "INT64", "INT32", "FP32", "FP64"]
    data: list[Any]
    parameters: dict[str, Any] | None = None


class InferParameters(BaseModel):
    """Options of a request."""

    model_config = ConfigDict(strict=True)

    limit: Annotated[int, Field(ge=1, le=LIMIT)] = 5


class InferRequest(BaseModel):
    """A request of the Open Inference Protocol."""

    model_config = ConfigDict(
        strict=True,
        json_schema_extra={
            "examples": [
                {
                    "inputs": [{"name": "text", "shape": [1], "datatype": "BYTES", "data": ["stung by a wasp"]}],
                    "parameters": {"limit": 3},
                }
            ]
        },
    )

    id: Identifier | None = None
    inputs: Annotated[list[Tensor], Field(min_length=1, max_length=8)]
    outputs: list[dict[str, Any]] | None = None
    parameters: InferParameters = InferParameters()


class OutputTensor(BaseModel):
    """An output tensor."""

    name: str
    shape: list[int]
    datatype: str
    data: list[Any]


class InferAnswer(BaseModel):
    """An answer of the Open Inference Protocol."""

    model_name: str
    model_version: str
    id: str | None = None
    outputs: list[OutputTensor]


class TensorMetadata(BaseModel):
    """What a tensor looks like; -1 is any length."""

    name: str
    datatype: str
    shape: list[int]


class ModelMetadata(BaseModel):
    """A model, as the Open Inference Protocol describes it."""

    name: str
    versions: list[str]
    platform: str
    inputs: list[TensorMetadata]
    outputs: list[TensorMetadata]


class ServerMetadata(BaseModel):
    """The server, as the Open Inference Protocol describes it."""

    name: str
    version: str
    extensions: list[str]


class Health(BaseModel):
    """Whether the server lives, or is ready."""

    live: bool | None = None
    ready: bool | None = None
