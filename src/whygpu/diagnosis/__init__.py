"""Pure judgement: findings to root causes and verdicts, logs to explanations."""
