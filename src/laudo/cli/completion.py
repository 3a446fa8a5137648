"""Shell completion of option values, where click's own leaves them out or garbles them."""

import os

from click.shell_completion import BashComplete, CompletionItem, FishComplete, ShellComplete, ZshComplete
from click.shell_completion import add_completion_class as add


# CompletionItem[str] is quoted, because in click 8.4 the class takes no type argument.
class _Values(ShellComplete):
    def get_completions(self, args: list[str], incomplete: str) -> "list[CompletionItem[str]]":
        """Also complete a value that begins with -, and one that follows its option after =."""
        flag, sign, value = incomplete.partition("=")
        if sign and flag.startswith("--"):
            found = self.get_completions([*args, flag], value)
            for item in found:
                item.value = f"{flag}={item.value}"
            return found
        if incomplete.startswith("-"):
            values = [item for item in super().get_completions(args, "") if item.value.startswith(incomplete)]
            if values:
                return values
        return super().get_completions(args, incomplete)


@add
class Bash(_Values, BashComplete):
    """Bash inserts a completion unquoted, so that a blank would end the value, and makes = a word of its own."""

    def get_completion_args(self) -> tuple[list[str], str]:
        args, incomplete = super().get_completion_args()
        return [arg for arg in args if arg != "="], incomplete

    def format_completion(self, item: "CompletionItem[str]") -> str:
        word = os.environ["COMP_WORDS"].split("\n")[int(os.environ["COMP_CWORD"]) :][:1]
        is_quoted = "".join(word).startswith(("'", '"'))
        blank = " " if is_quoted else r"\\ "  # Reading the line removes one of the two.
        return super().format_completion(item).replace(" ", blank)


@add
class Zsh(_Values, ZshComplete):
    pass


@add
class Fish(_Values, FishComplete):
    """Only the first comma separates; click's script would end a value or a help text at its own first comma."""

    source_template = FishComplete.source_template.replace("string split ", "string split --max 1 ")
