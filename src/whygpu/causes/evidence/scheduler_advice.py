"""What to do where a cluster's scheduler, and not the driver, decides which GPUs a job gets."""

from __future__ import annotations

from whygpu.model.finding import Remedy
from whygpu.model.lazy_regex import late
from whygpu.model.remedy import shell_script

SLURM = late(r"\bSLURM_[A-Z]|\bsrun\b|\bsbatch\b|\b(?i:slurm)")
ASK_SLURM = Remedy(
    "Request a GPU for the job: without --gres=gpu:1 (or --gpus=1) Slurm may choose a node without "
    "GPUs, or withholds those of the node.",
    shell_script("sinfo -o '%P %N %G'"),
)
ON_THAT_NODE = Remedy(
    "If the job has one, report the node to its administrators: its driver does not work.",
    shell_script("scontrol show job $SLURM_JOB_ID | grep -i -E 'tres|nodelist'"),
)
