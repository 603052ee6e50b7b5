"""Executes one instruction of each set and prints which of them trap, as one JSON object.

It runs as a separate program, by path. A processor may list an instruction set that does not work
in this environment: a virtual machine can pass on the flag and trap on the instruction. Only
executing the instruction shows that. Each instruction runs in a child process, so that a trap ends
only the child. The code is machine code for x86-64 in the memory of this process; no compiler is
needed.
"""

from __future__ import annotations

import json
import os
import signal
import sys

RETURN = "c3"
CLEAR_UPPER = "c5f877"
"""vzeroupper: leaves the registers as the calling convention requires."""

VECTOR_CODE = {
    "sse4_2": "660f3837c0",  # pcmpgtq xmm0, xmm0
    "avx": "c5fc57c0",  # vxorps ymm0, ymm0, ymm0
    "avx2": "c5fdefc0",  # vpxor ymm0, ymm0, ymm0
    "fma": "c4e27d98c0",  # vfmadd132ps ymm0, ymm0, ymm0
    "f16c": "c4e27d13c0",  # vcvtph2ps ymm0, xmm0
    "avx_vnni": "c4e27d50c0",  # {vex} vpdpbusd ymm0, ymm0, ymm0
    "avx512f": "62f17d48efc0",  # vpxord zmm0, zmm0, zmm0
    "avx512bw": "62f17d48fcc0",  # vpaddb zmm0, zmm0, zmm0
    "avx512_vnni": "62f27d4850c0",  # vpdpbusd zmm0, zmm0, zmm0
    "avx512_bf16": "62f27e4852c0",  # vdpbf16ps zmm0, zmm0, zmm0
    "avx512_fp16": "62f57c4858c0",  # vaddph zmm0, zmm0, zmm0
}
TILE_CODE = {
    "amx_tile": "",
    "amx_bf16": "c4e26a5cc1",  # tdpbf16ps tmm0, tmm1, tmm2
    "amx_int8": "c4e26b5ec1",  # tdpbssd tmm0, tmm1, tmm2
    "amx_fp16": "c4e26b5cc1",  # tdpfp16ps tmm0, tmm1, tmm2
}
LOAD_TILES = (
    "c4e2784907"  # ldtilecfg [rdi]
    "c4e27b49c0"  # tilezero tmm0
    "c4e27b4b0c16"  # tileloadd tmm1, [rsi + rdx]
    "c4e27b4b1416"  # tileloadd tmm2, [rsi + rdx]
)
STORE_TILES = (
    "c4e27a4b0416"  # tilestored [rsi + rdx], tmm0
    "c4e27849c0"  # tilerelease
)
TILE_ROWS, TILE_ROW_BYTES = 16, 64

ARCH_PRCTL, ARCH_REQ_XCOMP_PERM, TILE_DATA = 158, 0x1023, 18
PR_SET_DUMPABLE = 4
PROT_READ_EXEC, MAP_PRIVATE = 0x5, 0x2

NOT_PERMITTED = 3
"""The exit code of a child that the kernel did not allow to use tiles."""


def main() -> None:
    """Feature names as arguments."""
    print(json.dumps(_answer(sys.argv[1:])))


def _answer(features: list[str]) -> dict[str, object]:
    try:
        control = executed(RETURN)
        if control != "runs":
            return {"error": f"machine code in memory did not run: {control}"}
        return {"outcomes": {name: outcome_of(name) for name in features}}
    except (ImportError, AttributeError) as error:
        return {"error": f"this Python cannot run machine code: {error}"}
    except OSError as error:
        return {"error": f"no executable memory for machine code: {error.strerror}"}


def outcome_of(feature: str) -> str:
    """runs, traps, not-permitted, or how else the child ended."""
    if feature in TILE_CODE:
        return executed(LOAD_TILES + TILE_CODE[feature] + STORE_TILES + RETURN, tiles=True)
    clear = CLEAR_UPPER if feature != "sse4_2" else ""
    return executed(VECTOR_CODE[feature] + clear + RETURN)


def executed(code: str, *, tiles: bool = False, ask: bool = True) -> str:
    """Run machine code in a child. `ask`: request permission for tiles first, as programs do."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    address = _placed(libc, bytes.fromhex(code))
    child = os.fork()
    if child == 0:
        try:
            # A trap is a result here and needs no core dump.
            libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
            if tiles and ask and libc.syscall(ARCH_PRCTL, ARCH_REQ_XCOMP_PERM, TILE_DATA) != 0:
                os._exit(NOT_PERMITTED)
            _call(address)
            os._exit(0)
        finally:
            os._exit(1)
    return _ending(os.waitpid(child, 0)[1])


def _placed(libc: object, code: bytes) -> int:
    """The address of the code in executable memory, which is never writable at the same time."""
    import ctypes

    descriptor = os.memfd_create("whygpu", 0)
    try:
        os.write(descriptor, code)
        mmap = libc.mmap  # type: ignore[attr-defined]
        mmap.restype = ctypes.c_void_p
        mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
        address = mmap(None, len(code), PROT_READ_EXEC, MAP_PRIVATE, descriptor, 0)
        if address is None or address == ctypes.c_void_p(-1).value:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        return int(address)
    finally:
        os.close(descriptor)


def _call(address: int) -> None:
    import ctypes

    configuration = ctypes.create_string_buffer(_tile_configuration(), 64)
    data = ctypes.create_string_buffer(TILE_ROWS * TILE_ROW_BYTES)
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long)(address)
    function(ctypes.addressof(configuration), ctypes.addressof(data), TILE_ROW_BYTES)


def _tile_configuration() -> bytes:
    """Palette 1, and the first three of eight tiles with all their rows."""
    columns = TILE_ROW_BYTES.to_bytes(2, "little") * 3
    rows = bytes([TILE_ROWS] * 3)
    return bytes([1]).ljust(16, b"\0") + columns.ljust(32, b"\0") + rows.ljust(16, b"\0")


def _ending(status: int) -> str:
    code = os.waitstatus_to_exitcode(status)
    if code == 0:
        return "runs"
    if code == -signal.SIGILL:
        return "traps"
    if code == NOT_PERMITTED:
        return "not-permitted"
    return f"signal {-code}" if code < 0 else f"exit code {code}"


if __name__ == "__main__":
    main()
