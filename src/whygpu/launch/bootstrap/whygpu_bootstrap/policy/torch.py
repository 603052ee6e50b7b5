"""A device policy for PyTorch, put into effect without starting CUDA."""

import warnings

from whygpu_bootstrap import process_record


def apply(torch, settings):
    policy = settings["policy"]
    # Some of these names have newer ones, and say so.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if policy["cudnn_off"]:
            torch.backends.cudnn.enabled = False
            process_record.applied("torch", "backends.cudnn.enabled = False")
        if policy["tf32_off"]:
            torch.backends.cuda.matmul.allow_tf32 = False
            torch.backends.cudnn.allow_tf32 = False
            process_record.applied("torch", "allow_tf32 = False")
        if policy["deterministic"]:
            torch.backends.cudnn.benchmark = False
            torch.backends.cudnn.deterministic = True
            torch.use_deterministic_algorithms(True)
            # Before CUDA has started, PyTorch remembers the seed for it.
            torch.manual_seed(policy["seed"])
            process_record.applied("torch", "use_deterministic_algorithms(True)")
    memory = policy["memory"]
    if memory is not None and memory["kind"] != "growth":
        # Called when the program starts CUDA, or now if it has.
        torch.cuda._lazy_call(lambda: limit_memory(torch, memory))


def limit_memory(torch, memory):
    for index in range(torch.cuda.device_count()):
        part = memory["amount"]
        if memory["kind"] == "bytes":
            part = min(part / torch.cuda.get_device_properties(index).total_memory, 1.0)
        torch.cuda.set_per_process_memory_fraction(part, index)
    process_record.applied("torch", "set_per_process_memory_fraction")
