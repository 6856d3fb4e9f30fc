"""What a person can ask the demo model for, as plain values. `phrasebook` recognises them, `plan` and `talk` answer them."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

Language: TypeAlias = Literal["en", "zh"]


@dataclass(frozen=True, slots=True)
class ListFiles:
    """The files of a folder of the workspace."""

    folder: str = "."


@dataclass(frozen=True, slots=True)
class ReadFile:
    """The contents of a file."""

    path: str


@dataclass(frozen=True, slots=True)
class WriteFile:
    """A file with this text in it, new or replaced."""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class AppendText:
    """A text behind what a file holds."""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class ReplaceText:
    """One text for another, wherever a file has it."""

    path: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class MoveFile:
    """Move or rename."""

    source: str
    target: str


@dataclass(frozen=True, slots=True)
class CopyFile:
    """Another file like it."""

    source: str
    target: str


@dataclass(frozen=True, slots=True)
class DeleteFile:
    """A file, or a folder with all that is in it, gone."""

    path: str
    is_folder: bool = False


@dataclass(frozen=True, slots=True)
class MakeFolder:
    """A new folder."""

    path: str


@dataclass(frozen=True, slots=True)
class SearchText:
    """Where a text occurs, taken literally."""

    text: str
    folder: str = "."


@dataclass(frozen=True, slots=True)
class RunCommand:
    """A shell command as the person wrote it."""

    command: str


@dataclass(frozen=True, slots=True)
class Remember:
    """A fact to write down in the notes."""

    fact: str


@dataclass(frozen=True, slots=True)
class Forget:
    """What the notes hold on something, to be taken out."""

    about: str


@dataclass(frozen=True, slots=True)
class SearchCases:
    """Cases of the case memory like this."""

    query: str


@dataclass(frozen=True, slots=True)
class UseSkill:
    """A skill by its name, with what the person said behind it."""

    name: str
    arguments: str = ""


@dataclass(frozen=True, slots=True)
class Recall:
    """What is remembered, all of it."""


@dataclass(frozen=True, slots=True)
class LastMessage:
    """What the person said before."""


@dataclass(frozen=True, slots=True)
class WhatIsMy:
    """Something the person said about themselves."""

    key: str


@dataclass(frozen=True, slots=True)
class TellMy:
    """The person says something about themselves, for later."""

    key: str
    value: str


@dataclass(frozen=True, slots=True)
class LongStory:
    """A text that takes a while to stream."""


@dataclass(frozen=True, slots=True)
class CountTo:
    """The numbers up to a limit."""

    limit: int


@dataclass(frozen=True, slots=True)
class Summarise:
    """What the tools returned so far."""


@dataclass(frozen=True, slots=True)
class Help:
    """Who are you, what can you do, hello."""


@dataclass(frozen=True, slots=True)
class Courtesy:
    """Thanks, a farewell, or plain agreement."""

    kind: Literal["thanks", "farewell", "agreed"]


@dataclass(frozen=True, slots=True)
class Unknown:
    """Nothing that the demo model understands."""


ToolIntent: TypeAlias = (
    ListFiles
    | ReadFile
    | WriteFile
    | AppendText
    | ReplaceText
    | MoveFile
    | CopyFile
    | DeleteFile
    | MakeFolder
    | SearchText
    | RunCommand
    | Remember
    | Forget
    | SearchCases
    | UseSkill
    | Recall
)
TalkIntent: TypeAlias = (
    LastMessage | WhatIsMy | TellMy | LongStory | CountTo | Summarise | Help | Courtesy | Unknown
)
Intent: TypeAlias = ToolIntent | TalkIntent
