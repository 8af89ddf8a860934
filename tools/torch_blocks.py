"""Tells libholdfast_preload.so about the blocks of PyTorch's caching allocator.

PyTorch takes large segments from the driver and cuts tensors from them: a freed tensor is not a freed segment, and the
preload library alone sees segments. With this, it sees tensors too:

    import torch_blocks
    torch_blocks.watch()                    # early: before the tensors are made
    torch_blocks.name(workspace, "workspace")  # optional: what a tensor is called in the report

Reads torch.cuda.memory's own history; changes nothing in PyTorch. Does nothing, and says so by returning False, where the
library is not preloaded. Memory of private pools (of graphs, of torch.cuda.MemPool) is judged by segment: a graph rightly
refers to what was freed inside its own pool.
"""
import atexit
import ctypes

import torch

DEFAULT_POOL = (0, 0)
HISTORY = 200_000  # events kept between two looks


class Watcher:
    """Knows which blocks of default pools are in use, and passes every change on, in order."""

    def __init__(self, library):
        self.note_range = library.holdfast_preload_note_range
        self.note_range.argtypes = [ctypes.c_char_p, ctypes.c_uint64, ctypes.c_uint64]
        self.note_range.restype = None
        self.forget = library.holdfast_preload_forget
        self.forget.argtypes = [ctypes.c_uint64]
        self.forget.restype = None
        self.blocks = {}  # address: bytes
        self.last = {}  # device: the last event that was passed on
        self.private = []  # (begin, end) of segments of private pools, while they are there
        self.busy = False
        self.callback = ctypes.CFUNCTYPE(None)(self.refresh)
        self.library = library

    def refresh(self):
        """The library asks: called at the begin of each capture and before each audit."""
        try:
            self.sync()
        except Exception as error:  # pylint: disable=broad-except
            print(f"torch_blocks: not up to date: {error}", flush=True)

    def note(self, address, size, name=b""):
        if any(begin <= address < end for begin, end in self.private):
            return
        self.blocks[address] = size
        self.note_range(name, address, size)

    def drop(self, address):
        if self.blocks.pop(address, None) is not None:
            self.forget(address)

    def sync(self):
        """Passes on what happened since the last time."""
        if self.busy:  # looking may free memory by collecting garbage, and so be asked again
            return
        self.busy = True
        try:
            snapshot = torch.cuda.memory._snapshot()
            self.take(snapshot)
        finally:
            self.busy = False

    def take(self, snapshot):
        segments = snapshot["segments"]
        self.private = [(s["address"], s["address"] + s["total_size"]) for s in segments
                        if tuple(s.get("segment_pool_id", DEFAULT_POOL)) != DEFAULT_POOL]
        for device, events in enumerate(snapshot.get("device_traces", [])):
            for event in self.fresh(device, events):
                if event["action"] == "alloc":
                    self.note(event["addr"], event["size"])
                elif event["action"] == "free_completed":
                    self.drop(event["addr"])
        # What the history does not tell (it is bounded, and begins when it was switched on).
        in_use = {}
        for segment in segments:
            address = segment["address"]
            for block in segment["blocks"]:
                address = block.get("address", address)
                if block["state"] != "inactive":
                    in_use[address] = block.get("requested_size") or block["size"]
                address += block["size"]
        for address in [a for a in self.blocks if a not in in_use]:
            self.drop(address)
        for address, size in in_use.items():
            if address not in self.blocks:
                self.note(address, size)

    def fresh(self, device, events):
        """The events after the last one that was seen."""
        def key(event):
            return event["action"], event["addr"], event["size"], event.get("time_us")
        last = self.last.get(device)
        start = 0
        if last is not None:
            for i in range(len(events) - 1, -1, -1):
                if key(events[i]) == last:
                    start = i + 1
                    break
        if events:
            self.last[device] = key(events[-1])
        return events[start:]


watcher = None


def watch():
    """Starts. False if the library is not preloaded."""
    global watcher
    library = ctypes.CDLL(None)
    if watcher is not None or not hasattr(library, "holdfast_preload_note_range"):
        return watcher is not None
    torch.cuda.memory._record_memory_history("all", context=None, max_entries=HISTORY)
    watcher = Watcher(library)
    watcher.sync()
    library.holdfast_preload_on_audit(watcher.callback)
    atexit.register(stop)
    return True


def name(tensor, text):
    """Calls a tensor's memory `text` in the report. After watch(), while the tensor is there."""
    if watcher is None:
        return
    watcher.sync()
    address = tensor.untyped_storage().data_ptr()
    size = watcher.blocks.get(address)
    if size is not None:
        watcher.note(address, size, text.encode())


def sync():
    """Looks now. Not needed: the library asks where it matters; but what goes after the last look goes unseen."""
    if watcher is not None:
        watcher.sync()


def stop():
    """A last look; what is freed afterwards is teardown."""
    global watcher
    if watcher is None:
        return
    watcher.refresh()
    watcher.library.holdfast_preload_on_audit(None)
    watcher = None
