"""Parameters and results of operations: their base models, the field types that several of them share, and the error
for parameters that do not fit."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, WithJsonSchema

from nudge.context import Context, project_of, resolve
from nudge.errors import Invalid
from nudge.text import to_unicode
from nudge.usecases.call import Call

_CONTEXT = "where the caller is: {cwd, repo, branch, os: linux|darwin|windows, env}; filled in for you on stdio"

ContextParam = Annotated[dict[str, Any] | None, Field(description=_CONTEXT)]
SameContext = Annotated[dict[str, Any] | None, Field(description="as for nudge_get_hint")]
Text = Annotated[str, AfterValidator(to_unicode)]
ProjectName = Annotated[Text, AfterValidator(str.casefold)]
# Null is a value here, unlike elsewhere, so the schema names it.
Project = Annotated[
    ProjectName | None,
    WithJsonSchema({"oneOf": [{"type": "string"}, {"type": "null"}], "description": "default: yours; null = all"}),
]


# Pydantic builds both kinds of models at their first use (`defer_build`): there are a hundred of them, and building all
# would delay the start of a server that takes over.
class Params(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, defer_build=True)


class Result(BaseModel):
    model_config = ConfigDict(defer_build=True)


class NoParams(Params):
    pass


class InContext(Params):
    """`context` is the caller's, as for hints. Interfaces fill it in, so its schema says no more about it."""

    context: dict[str, Any] | None = None

    def caller_context(self, call: Call) -> Context:
        return Context.parse(self.context).merged(call.context)

    def caller_project(self, call: Call) -> str | None:
        """The project where the caller is. Reads the caller's directory when its context names neither project nor
        repo."""
        context = self.caller_context(call)
        project = context.project or (project_of(context.repo, None) if context.repo else None)
        return project or (resolve(context.cwd).project if context.cwd else None)

    def chosen_project(self, project: str | None, call: Call) -> str | None:
        """The parameter `project` when the caller gives it, null for all; otherwise the caller's own."""
        return project if "project" in self.model_fields_set else self.caller_project(call)


def parse_params(model: Any, params: dict[str, Any]) -> Any:
    """The parameters as a model; raises Invalid naming the first field that is wrong."""
    try:
        return model.model_validate(params)
    except ValidationError as error:
        raise _first_problem(error) from None


_SENTENCES = {
    "missing": "is required",
    "extra_forbidden": "is not a parameter of this method",
    "string_type": "must be a string",
    "int_type": "must be an integer",
    "int_from_float": "must be an integer",
    "float_type": "must be a number",
    "bool_type": "must be true or false",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "list_type": "must be a list",
    "literal_error": "must be one of {expected}",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
    "too_short": "must not be empty",
    "too_long": "must have at most {max_length} items",
}


def _first_problem(error: ValidationError) -> Invalid:
    problem = error.errors(include_url=False, include_input=False)[0]
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in problem["loc"]).lstrip(".")
    context = problem.get("ctx", {})
    sentence = _SENTENCES.get(problem["type"], problem["msg"]).format(**context)
    if problem["type"] == "too_short" and context["min_length"] > 1:
        sentence = f"must have at least {context['min_length']} items"
    return Invalid(sentence, field=place[:200] or None)
