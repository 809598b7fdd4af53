"""From BERT to ModernBERT, one change at a time, and what each change bought."""
