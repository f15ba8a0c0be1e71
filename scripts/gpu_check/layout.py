"""The folders of programs, data and results, in a bundle or in a source tree."""

import glob
import json
import os
import shutil
import site
import sys
import sysconfig
import tarfile
from pathlib import Path

# Libraries of the machine that evald's programs load by name.
LIBRARIES = ("libcublasLt.so.13", "libcublasLt.so.12", "libcupti.so.13", "libcupti.so.12", "libnvrtc.so.13",
             "libnvrtc.so.12")


class Layout:
    def __init__(self, root, results, binaries, benches, data, tokenizer, version, emulated):
        self.root = root
        self.results = results
        self.binaries = binaries
        self.benches = benches  # bench/gpu
        self.data = data
        self.tokenizer = tokenizer  # may not exist yet
        self.version = version
        self.emulated = emulated

    @staticmethod
    def find(script, emulated):
        folder = script.parent
        manifest = folder / "MANIFEST.json"
        if manifest.exists():
            unpack_programs(folder)
            version = json.loads(manifest.read_text()).get("commit", "")
            return Layout(folder, folder / "results", folder / "bin", folder / "bench/gpu", folder / "data",
                          folder / "tokenizer", version, emulated)
        root = folder.parent
        binaries = Path(os.environ.get("EVALD_BINARIES", root / "build/release")).resolve()
        return Layout(root, root / "build/gpu-results", binaries, root / "bench/gpu", root.parent / "shared/data",
                      root / "build/gpu-tokenizer", "source tree", emulated)

    def program(self, name):
        """The path of a program. With --emulated, that of its emulated form."""
        return self.binaries / (f"{name}-emulated" if self.emulated else name)

    @property
    def golden(self):
        return self.root / "tests/golden/native"

    @property
    def quickstart(self):
        return self.root / "examples/quickstart"


def unpack_programs(folder):
    """Unpacks the programs and their libraries. Each folder appears whole."""
    if all((folder / name).exists() for name in ("bin", "lib")):
        return
    part = folder / "programs.part"
    shutil.rmtree(part, ignore_errors=True)
    with tarfile.open(folder / "programs.tar.xz") as tar:
        tar.extractall(part)
    for name in ("bin", "lib"):
        shutil.rmtree(folder / name, ignore_errors=True)
        (part / name).rename(folder / name)
    part.rmdir()


def library_folders():
    """Folders that may hold CUDA's libraries on this machine, likeliest first."""
    folders = os.environ.get("LD_LIBRARY_PATH", "").split(":")
    packages = {*site.getsitepackages(), sysconfig.get_paths()["purelib"], site.getusersitepackages(), *sys.path}
    for package in sorted(packages):
        folders += sorted(glob.glob(f"{package}/nvidia/*/lib"), reverse=True)
    for pattern in ("/usr/local/cuda*/lib64", "/usr/local/cuda*/targets/x86_64-linux/lib",
                    "/usr/local/cuda*/extras/CUPTI/lib64", "/opt/cuda/lib64", "/usr/lib/x86_64-linux-gnu"):
        folders += sorted(glob.glob(pattern), reverse=True)
    return [folder for folder in folders if folder and os.path.isdir(folder)]


def link_libraries(folder):
    """Links the LIBRARIES that are found into a folder. Only this folder is added to the search path of evald's
    programs; other programs keep their own path. Returns name -> path."""
    folder.mkdir(parents=True, exist_ok=True)
    found = {}
    for name in LIBRARIES:
        for place in library_folders():
            path = os.path.join(place, name)
            if os.path.exists(path):
                found[name] = os.path.realpath(path)
                link = folder / name
                link.unlink(missing_ok=True)
                link.symlink_to(found[name])
                break
    return found
