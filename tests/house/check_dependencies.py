"""Verifies that layers include only what lies below them, and that only device/ sees the driver and the OS.

device <- allocator <- {graphs, attention} <- runtime <- testing <- tools; python beside testing; examples use what
users may use; preload, which audits foreign programs, hangs from graphs and nobody uses it.
"""
import re

import tree

BELOW = {
    "device": set(),
    "allocator": {"device"},
    "graphs": {"device", "allocator"},
    "attention": {"device", "allocator"},
    "runtime": {"device", "allocator", "graphs", "attention"},
}
BELOW["python"] = set(BELOW)
BELOW["testing"] = set(BELOW) - {"python"}
BELOW["tools"] = BELOW["examples"] = set(BELOW)
BELOW["preload"] = {"device", "allocator", "graphs"}
LAYERS = set(BELOW)

# Headers of the kit that need no library: tests of the layers below may use them.
FOR_ALL_TESTS = {"testing/gate.h"}

# Headers through which memory could be had behind the device's back.
DRIVER_HEADER = re.compile(
    r"cuda\.h|cuda_runtime\w*\.h(pp)?|cudaTypedefs\.h|cublas\w*\.h|nvml\.h|sys/mman\.h")
INCLUDE = re.compile(r"\s*#\s*include\s*([<\"])([^>\"]+)[>\"]")
LINKED_LAYER = re.compile(r"\bholdfast(?:::|_)(" + "|".join(sorted(LAYERS)) + r")\b")


def check_include(name, bracket, header):
    """What is wrong with one include of file `name`, or None."""
    top = name.parts[0] if len(name.parts) > 1 else ""
    if DRIVER_HEADER.fullmatch(header) and top not in {"device", "tests"}:
        return f"only device/ may include {header}"
    if bracket == "<":
        return None
    if ".." in header.split("/") or "/" not in header:
        return f"include \"{header}\" is not a path from the root"
    target = header.split("/")[0]
    if target == "tests" and top != "tests":
        return f"{top}/ must not include {header}"
    if top == "tests" and header in FOR_ALL_TESTS:
        return None
    owner = name.parts[1] if top == "tests" and len(name.parts) > 2 else top
    if owner in BELOW and target in LAYERS and target != owner and target not in BELOW[owner]:
        return f"{top}/ must not include {header}" if top != "tests" else (
            f"tests/{owner}/ must not include {header}")
    return None


def check_file(root, name):
    found = []
    for number, text in tree.lines(root, name):
        if name.suffix in {".h", ".cc", ".cu", ".cuh"}:
            match = INCLUDE.match(text)
            wrong = check_include(name, *match.groups()) if match else None
            if wrong:
                found.append(f"{name}:{number}: {wrong}")
        elif name.name == "CMakeLists.txt" and name.parts[0] in BELOW:
            own = name.parts[0]
            code = text.split("#")[0]
            for layer in LINKED_LAYER.findall(code):
                if layer != own and layer not in BELOW[own]:
                    found.append(f"{name}:{number}: {own}/ must not link {layer}")
    return found


def check(root):
    return [line for name in tree.files(root) for line in check_file(root, name)]


SOUND = {
    "device/host/a.cc": "#include <sys/mman.h>\n#include \"device/a.h\"\n",
    "device/cuda/a.cc": "#include <cuda.h>\n#include \"cublasLt.h/x\"\n",
    "graphs/a.cc": "#include \"allocator/a.h\"\n#include \"absl/status/status.h\"\n",
    "attention/kernels/a.cu": "#include <cuda_bf16.h>\n#include \"device/op.h\"\n",
    "runtime/a.cc": "#include \"graphs/a.h\"\n#include \"attention/a.h\"\n",
    "tests/device/a_test.cc": "#include <cuda_runtime_api.h>\n#include \"tests/device/test_device.h\"\n",
    "tests/device/b_test.cc": "#include \"testing/gate.h\"\n",
    "testing/a.cc": "#include \"runtime/a.h\"\n#include \"graphs/a.h\"\n",
    "tools/a.cc": "#include \"testing/a.h\"\n",
    "tools/CMakeLists.txt": "target_link_libraries(holdfast PRIVATE holdfast::runtime)\n",
}
FAULTS = [
    ({"graphs/b.h": "#include \"attention/a.h\"\n"}, "graphs/b.h:1: graphs/ must not include"),
    ({"attention/b.h": "\n#  include \"graphs/a.h\"\n"}, "attention/b.h:2: attention/ must not include"),
    ({"device/b.cc": "#include \"allocator/a.h\"\n"}, "device/ must not include allocator/a.h"),
    ({"allocator/b.cc": "#include \"runtime/a.h\"\n"}, "allocator/ must not include runtime/a.h"),
    ({"runtime/b.cc": "#include \"tools/a.h\"\n"}, "runtime/ must not include tools/a.h"),
    ({"runtime/b.cc": "#include \"testing/a.h\"\n"}, "runtime/ must not include testing/a.h"),
    ({"tests/device/b_test.cc": "#include \"testing/battery.h\"\n"}, "tests/device/ must not include testing/battery.h"),
    ({"device/b.cc": "#include \"testing/gate.h\"\n"}, "device/ must not include testing/gate.h"),
    ({"testing/b.cc": "#include \"tools/a.h\"\n"}, "testing/ must not include tools/a.h"),
    ({"testing/b.cc": "#include <sys/mman.h>\n"}, "only device/ may include sys/mman.h"),
    ({"runtime/b.cc": "#include \"tests/device/test_device.h\"\n"}, "runtime/ must not include tests/"),
    ({"tests/graphs/b_test.cc": "#include \"runtime/a.h\"\n"}, "tests/graphs/ must not include"),
    ({"allocator/b.cc": "#include <sys/mman.h>\n"}, "only device/ may include sys/mman.h"),
    ({"runtime/kernels/b.cu": "#include <cuda_runtime.h>\n"}, "only device/ may include cuda_runtime.h"),
    ({"runtime/b.cc": "#include <cublasLt.h>\n"}, "only device/ may include cublasLt.h"),
    ({"tools/b.cc": "#include \"cuda.h\"\n"}, "only device/ may include cuda.h"),
    ({"examples/b.cc": "#include <cudaTypedefs.h>\n"}, "only device/ may include cudaTypedefs.h"),
    ({"graphs/b.cc": "#include \"../allocator/a.h\"\n"}, "is not a path from the root"),
    ({"graphs/b.cc": "#include \"a.h\"\n"}, "is not a path from the root"),
    ({"preload/b.cc": "#include \"runtime/a.h\"\n"}, "preload/ must not include runtime/a.h"),
    ({"preload/b.cc": "#include <cuda.h>\n"}, "only device/ may include cuda.h"),
    ({"tools/b.cc": "#include \"preload/a.h\"\n"}, "tools/ must not include preload/a.h"),
    ({"graphs/CMakeLists.txt": "holdfast_library(graphs SOURCES a.cc DEPENDS holdfast::attention)\n"},
     "graphs/CMakeLists.txt:1: graphs/ must not link attention"),
]

if __name__ == "__main__":
    tree.main(check, SOUND, FAULTS)
