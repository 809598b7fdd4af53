"""Fine-tuning: labelled sets, their encoding, losses, metrics, baselines, and the loop.

>>> from core_models.tasks import finetune, sets
>>> task = sets.load("sentiment")
>>> result = finetune.finetune(model, task)
>>> result.report.metrics["accuracy"]
"""
