"""Text to pieces and back."""

from core_models.tokenizer.encoding import MAX_CHARACTERS, Encoding, check_text
from core_models.tokenizer.files import Slot, Specials, Template
from core_models.tokenizer.tokenizer import Tokenizer

__all__ = [
    "MAX_CHARACTERS",
    "Encoding",
    "Slot",
    "Specials",
    "Template",
    "Tokenizer",
    "check_text",
]
