"""A script that asks the real dynamic loader; runs in any Python from 3.6 on.

It answers questions, one JSON line each, every question in a fork of its own: a crash ends that
fork only, and nothing stays loaded. tests/real_loader.py talks to it.
"""

# ruff: noqa: UP006, UP035 - Python 3.6 has no list[...]

import ctypes
import json
import mmap
import os
import sys
from typing import Any, Dict, List, Optional

RTLD_NOW = 2


class LinkMap(ctypes.Structure):
    pass


LinkMap._fields_ = [
    ("address", ctypes.c_void_p),
    ("name", ctypes.c_char_p),
    ("dynamic", ctypes.c_void_p),
    ("next", ctypes.POINTER(LinkMap)),
    ("previous", ctypes.POINTER(LinkMap)),
]


def call_from(address: int, library: str) -> Optional[int]:
    """dlopen with a return address inside another file, which the loader takes for the caller."""
    # push the stub's end; push the given address; jump to dlopen. The given address holds a
    # return instruction, which leads to the stub's end, which returns to us.
    stub = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    stub.write(bytes.fromhex("488d05040000005051ffe2c3"))
    place = ctypes.addressof(ctypes.c_char.from_buffer(stub))
    kind = ctypes.CFUNCTYPE(
        ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p
    )
    dlopen = ctypes.cast(ctypes.CDLL(None).dlopen, ctypes.c_void_p)
    handle: Optional[int] = kind(place)(library.encode(), RTLD_NOW, dlopen, address)
    return handle


def return_instruction_in(path: str) -> int:
    """The address of a return instruction in the executable part of a loaded file."""
    wanted = os.stat(path)
    with open("/proc/self/maps") as maps:
        for line in maps:
            fields = line.split(None, 5)
            if len(fields) < 6 or "x" not in fields[1]:
                continue
            name = fields[5].rstrip("\n")
            if not name.startswith("/") or not os.path.exists(name):
                continue
            if os.path.samestat(os.stat(name), wanted):
                start, end = (int(text, 16) for text in fields[0].split("-"))
                content = ctypes.string_at(start, min(end - start, 1 << 20))
                place = content.find(b"\xc3")
                if place >= 0:
                    return start + place
    raise LookupError(path + " is not loaded")


def dlopen(library: str, requester: Optional[str]) -> Dict[str, str]:
    libc = ctypes.CDLL(None)
    libc.dlerror.restype = ctypes.c_char_p
    if requester is None:
        libc.dlopen.restype = ctypes.c_void_p
        libc.dlopen.argtypes = [ctypes.c_char_p, ctypes.c_int]
        handle = libc.dlopen(library.encode(), RTLD_NOW)
    else:
        address = return_instruction_in(requester)
        libc.dlerror()
        handle = call_from(address, library)
    if not handle:
        return {"error": libc.dlerror().decode("utf-8", "replace")}
    name = ctypes.cast(handle, ctypes.POINTER(LinkMap)).contents.name
    return {"path": name.decode()}


def answer(question: Dict[str, Any]) -> List[Dict[str, Any]]:
    """Every request in one fork; a signal ends the list."""
    receiver, sender = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(receiver)
        os.chdir(question["cwd"])
        if question["user"] is not None:
            os.setuid(question["user"])
        for library, requester in question["requests"]:
            line = json.dumps(dlopen(library, requester)) + "\n"
            os.write(sender, line.encode())
        os._exit(0)
    os.close(sender)
    with os.fdopen(receiver) as answers:
        told = [json.loads(line) for line in answers]
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        told.append({"signal": os.WTERMSIG(status)})
    return told


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)
