"""Masked-token encoders that our core has no family for, run by transformers behind our Model.

:func:`core_models.load` comes here by itself. What a lab reads of a model is there: predictions,
hidden states, and where the class computes it in the usual way attention with its queries, keys and
values, heads switched off, gradients. What is not there raises
:class:`~core_models.errors.InputError` with a sentence for people: the parts of a score, streams,
counts by part, saving and training.
"""
