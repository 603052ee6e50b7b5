"""Which devices PyTorch used, asked without starting CUDA."""


def started(torch):
    """Whether CUDA was started; work on the CPU needs no start and cannot be told from none."""
    return bool(torch.cuda.is_initialized())


def used(torch):
    gpus = []
    peak = 0
    for index in range(torch.cuda.device_count()):
        reserved = torch.cuda.max_memory_reserved(index)
        if reserved:
            gpus.append({"device": "gpu:%d" % index, "name": torch.cuda.get_device_name(index)})
            peak += reserved
    return {"used": gpus, "peak_memory_bytes": peak or None}
