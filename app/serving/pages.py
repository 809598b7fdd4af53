"""What Gradio remembers of each open page: as little as its own handlers need.

Gradio 6.31 writes the configuration of every component down for every page that asks for the first
time, for links of its own (``/deep_link``) that this page does not have.
"""

from copy import copy
from typing import Any

from gradio.blocks import Blocks
from gradio.state_holder import SessionState, StateHolder


class PageState(SessionState):
    """Components that answers have changed in one page; nothing is written down beforehand."""

    def __init__(self, blocks: Blocks) -> None:
        self.blocks_config = copy(blocks.default_config)
        self.config_values: dict[int, Any] = {}
        self.state_data: dict[int, Any] = {}
        self._state_ttl: dict[int, Any] = {}
        self.is_closed = False

    def _update_value_in_config(self, key: int, value: Any) -> None:
        """Answers are not kept: nothing here reads them."""


class Pages(StateHolder):
    """The pages that were seen last, up to the capacity that the server was started with."""

    def __getitem__(self, session_id: str) -> SessionState:
        """The state of a page, made when it first asks."""
        if session_id not in self.session_data:
            self.session_data[session_id] = PageState(self.blocks)
        return super().__getitem__(session_id)


def remember_little(blocks: Blocks) -> None:
    """Let a started page use these."""
    pages = Pages()
    pages.set_blocks(blocks)
    blocks.app.state_holder = pages
