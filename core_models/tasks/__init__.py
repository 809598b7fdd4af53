"""What is asked of labelled text: sets, their encoding, losses, metrics, baselines.

>>> from core_models.tasks import sets
>>> from core_models.training.finetune import finetune
>>> task = sets.load("sentiment")
>>> result = finetune(model, task)
>>> result.report.metrics["accuracy"]
"""
