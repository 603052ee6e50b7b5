"""What PyTorch does, and its warnings, which say why CUDA is not available."""

import warnings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    from .harness import Report, Sums


def probe(report: "Report", sums: "Sums") -> None:
    report.stage("import")
    import torch

    report.version(torch.__version__)
    report.fact("location", torch.__file__)
    report.stage("build")
    report.fact("version.cuda", torch.version.cuda)
    report.fact("version.hip", getattr(torch.version, "hip", None))
    report.ask("architectures", lambda: " ".join(torch.cuda.get_arch_list()))

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        report.stage("torch.cuda.is_available")
        available = torch.cuda.is_available()
        report.fact("torch.cuda.is_available", available)
        # It raises the reason that is_available() hides, and warns of a GPU that the build lacks.
        report.stage("torch.cuda.init")
        report.ask("torch.cuda.init", torch.cuda.init)
    for warning in caught:
        report.fact("warning", " ".join(str(warning.message).split()))
    report.stage("cudnn")
    report.ask("cudnn", torch.backends.cudnn.version)

    report.stage("devices")
    devices = [("cpu", "")] + cuda_devices(torch, available) + other_devices(torch)
    report.devices(devices)
    for name, _ in devices:
        operate(report, sums, torch, name)


def cuda_devices(torch: "Any", available: bool) -> "list[tuple[str, str]]":
    if not available:
        return []
    return [
        ("cuda:%d" % index, describe(torch, index)) for index in range(torch.cuda.device_count())
    ]


def describe(torch: "Any", index: int) -> str:
    capability = "compute capability %d.%d" % torch.cuda.get_device_capability(index)
    return "%s, %s" % (torch.cuda.get_device_name(index), capability)


def other_devices(torch: "Any") -> "list[tuple[str, str]]":
    """GPUs that do not use CUDA: Apple's and Intel's."""
    mps = getattr(torch.backends, "mps", None)
    xpu = getattr(torch, "xpu", None)
    devices = []
    if mps is not None and mps.is_available():
        devices.append(("mps", "Apple GPU (Metal)"))
    if xpu is not None and xpu.is_available():
        devices += [
            ("xpu:%d" % index, xpu.get_device_name(index)) for index in range(xpu.device_count())
        ]
    return devices


def operate(report: "Report", sums: "Sums", torch: "Any", device: str) -> None:
    def put(numbers: "list[Any]") -> "Any":
        return torch.tensor(numbers, device=device)

    report.operate("matmul", device, lambda: product(sums, torch, put))
    report.operate("convolution", device, lambda: convolution(sums, torch, put))


def product(sums: "Sums", torch: "Any", put: "Callable[[list[Any]], Any]") -> "tuple[str, bool]":
    return landed(torch.matmul(put(sums.left), put(sums.right)), torch, sums, "matmul")


def convolution(
    sums: "Sums", torch: "Any", put: "Callable[[list[Any]], Any]"
) -> "tuple[str, bool]":
    # PyTorch has channels first.
    image = put(sums.image).permute(0, 3, 1, 2).contiguous()
    kernel = put(sums.kernel).permute(3, 2, 0, 1).contiguous()
    result = torch.nn.functional.conv2d(image, kernel, padding=1)
    return landed(result.permute(0, 2, 3, 1), torch, sums, "convolution")


def landed(result: "Any", torch: "Any", sums: "Sums", operation: str) -> "tuple[str, bool]":
    if result.is_cuda:
        torch.cuda.synchronize(result.device)
    return str(result.device), sums.agrees(operation, result.cpu().tolist())
