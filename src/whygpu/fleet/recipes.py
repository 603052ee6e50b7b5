"""Files with which other engines take the snapshots: scripts for Slurm, a manifest for Kubernetes.

whygpu writes them and starts nothing. Values of the user are checked or quoted.
"""

from __future__ import annotations

import re
import shlex
from typing import Literal, get_args

from whygpu.errors import UsageError

RecipeName = Literal["slurm", "slurm-prolog", "kubernetes"]
NAMES: tuple[RecipeName, ...] = get_args(RecipeName)
NO_IMAGE = "registry.example.com/training:latest"
"""Stands for an image with whygpu and the frameworks to check."""

_IMAGE = re.compile(r"[a-z0-9][\w./:@-]{0,254}", re.ASCII)

_SLURM = """\
#!/bin/sh
# One small job for each node of the cluster, so that a busy or broken node does not hold up the
# others. Run it where sbatch works: sh whygpu-fleet.sh
#
# The folder has to be on a file system that all nodes share. --exclusive lets a job see all GPUs of
# its node; without it, Slurm hides those that it did not request.
# A node in several partitions gets its job in one of them; a node of which Slurm refuses the job is
# named and does not hold up the others either.
set -eu
folder={folder}
mkdir -p "$folder"
sinfo --noheader --Node --format='%N %R' | sort -u -k1,1 > "$folder/partitions.txt"
cut -d' ' -f1 "$folder/partitions.txt" > "$folder/nodes.txt"
while read -r node partition; do
    sbatch --job-name=whygpu-fleet --partition="$partition" --nodelist="$node" --nodes=1 \\
        --ntasks=1 --exclusive --time=10 --output="$folder/%N.out" \\
        --wrap="whygpu snapshot -o '$folder/$node.json'" ||
        echo "no job for $node in partition $partition: see the error above" >&2
done < "$folder/partitions.txt"
echo "when the jobs have ended: whygpu fleet report '$folder' --expect '$folder/nodes.txt'"
"""

_PROLOG = """\
#!/bin/sh
# For slurm.conf: Prolog=/etc/slurm/whygpu-prolog.sh (the same file works as an Epilog).
#
# Slurm drains a node whose Prolog or Epilog ends with a code other than 0. This script ends with 1
# only if whygpu is certain of a fault of the driver or the hardware (WG1xx, an error). Whatever
# else happens, also a failure of whygpu itself, lets the job run.
#
# Slurm starts a Prolog without PATH: name the folder of the program whygpu here. Try it before you
# use it, on a node: env -i sh whygpu-prolog.sh; echo $?
PATH=/opt/whygpu/bin:${PATH:-/usr/local/bin:/usr/bin:/bin}
export PATH
for program in whygpu python3 timeout; do
    command -v $program > /dev/null || {
        # slurmd keeps no output of a Prolog that ends with 0; the system's log does.
        logger -s -t whygpu-prolog "nothing was checked, because $program is not on $PATH" ||
            echo "whygpu-prolog: nothing was checked, because $program is not on $PATH" >&2
        exit 0
    }
done
report=$(timeout 60 whygpu check --no-probe --json 2>/dev/null) || [ $? -eq 1 ] || exit 0
printf '%s' "$report" | python3 -c '
import json, sys
try:
    causes = json.load(sys.stdin)["root_causes"]
except (ValueError, KeyError):
    sys.exit(0)
bad = [c for c in causes if c["code"].startswith("WG1")
       and c["severity"] == "error" and c["confidence"] == "certain"]
for cause in bad:
    print("whygpu: {code} {cause}: {message}".format(**cause), file=sys.stderr)
sys.exit(1 if bad else 0)
'
"""

_KUBERNETES = """\
# One pod on each node with a GPU. Its init container prints the snapshot of the node; collect them:
#
#   kubectl apply -f whygpu-fleet.yaml
#   kubectl rollout status daemonset/whygpu-fleet --timeout=10m
#   mkdir -p snapshots
#   kubectl get pods -l app=whygpu-fleet \\
#     -o jsonpath='{{range .items[*]}}{{.metadata.name}} {{.spec.nodeName}}{{"\\n"}}{{end}}' |
#   while read -r pod node; do kubectl logs "$pod" -c snapshot > "snapshots/$node.json"; done
#   kubectl get nodes -l nvidia.com/gpu.present=true -o name > nodes.txt
#   kubectl delete -f whygpu-fleet.yaml
#   whygpu fleet report snapshots --expect nodes.txt
#
# The pods request no nvidia.com/gpu, so they take no GPU from anybody; the runtime class and
# NVIDIA_VISIBLE_DEVICES let them see all of them.
apiVersion: apps/v1
kind: DaemonSet
metadata:
  name: whygpu-fleet
  labels:
    app: whygpu-fleet
spec:
  selector:
    matchLabels:
      app: whygpu-fleet
  template:
    metadata:
      labels:
        app: whygpu-fleet
    spec:
      runtimeClassName: nvidia
      nodeSelector:
        nvidia.com/gpu.present: "true"
      tolerations:
        - operator: Exists
      automountServiceAccountToken: false
      initContainers:
        - name: snapshot
          image: {image}
          # The log of a container has both its streams, and a snapshot is one of them alone. A
          # failure of whygpu must not start the pod again and again.
          command: ["sh", "-c", "whygpu snapshot 2>/tmp/errors || cat /tmp/errors"]
          env:
            - name: NVIDIA_VISIBLE_DEVICES
              value: all
            - name: NVIDIA_DRIVER_CAPABILITIES
              value: compute,utility
          resources:
            requests:
              cpu: 100m
              memory: 512Mi
            limits:
              memory: 8Gi
      containers:
        - name: done
          image: {image}
          command: ["sleep", "infinity"]
          resources:
            requests:
              cpu: 1m
              memory: 8Mi
"""


def recipe(name: str, *, folder: str, image: str) -> str:
    """The text of one recipe. `folder` is for slurm, `image` for kubernetes."""
    if name == "slurm":
        if any(sign in folder for sign in "'\n%"):
            # Slurm replaces what follows a % in the name of a file.
            raise UsageError("expected a folder without ' and %", option="folder", value=folder)
        return _SLURM.format(folder=shlex.quote(folder))
    if name == "slurm-prolog":
        return _PROLOG
    if name == "kubernetes":
        if _IMAGE.fullmatch(image) is None:
            raise UsageError("expected the name of an image", option="image", value=image)
        return _KUBERNETES.format(image=image)
    raise UsageError(f"there is no recipe {name!r}; choose one of {', '.join(NAMES)}")
