"""The binding is what the compiler sees: names, sizes, offsets, defaults."""

import os
import re
import subprocess

import pytest

import lockstep
from lockstep import _errors
from lockstep._binding import ffi
from lockstep._library import Options, lib, text

INCLUDE = os.path.join(os.environ["SOURCE_DIR"], "include")
HEADERS = [name for name in sorted(os.listdir(os.path.join(INCLUDE, "lockstep")))
           if name not in ("bench.h", "faults.h", "plan.h", "probe.h", "report.h", "serve.h", "sweep.h", "lockstep.h")]  # fmt: skip


def header_text():
    return "".join(open(os.path.join(INCLUDE, "lockstep", name)).read() for name in HEADERS)


def structs():
    """Types of the binding that have fields."""
    names = [name for name in ffi.list_types()[0] if name.startswith("ls_") and ffi.typeof(name).kind == "struct"]
    return [name for name in names if has_size(name)]


def has_size(name):
    """Whether the headers show what is inside."""
    try:
        return ffi.sizeof(name) > 0
    except (ffi.error, ValueError):
        return False


def compiled_layout(work):
    """Size of each struct and offset and size of each field, as the C compiler has them."""
    lines = [f"#include <lockstep/{name}>" for name in HEADERS] + ["#include <stdio.h>", "int main(void)", "{"]
    for name in structs():
        lines.append(f'printf("{name} %zu\\n", sizeof({name}));')
        for field, _ in ffi.typeof(name).fields:
            lines.append(f'printf("{name}.{field} %zu %zu\\n", offsetof({name}, {field}), sizeof((({name} *)0)->{field}));')
    source = work / "layout.c"
    source.write_text("\n".join(lines + ["return 0;", "}"]))
    compiler = os.environ.get("CC", "cc").split()
    subprocess.run([*compiler, f"-I{INCLUDE}", str(source), "-o", str(work / "layout")], check=True)
    return subprocess.run([str(work / "layout")], check=True, capture_output=True, text=True).stdout.splitlines()


def test_structs_are_laid_out_as_in_c(tmp_path):
    expected = []
    for name in structs():
        expected.append(f"{name} {ffi.sizeof(name)}")
        for field, info in ffi.typeof(name).fields:
            expected.append(f"{name}.{field} {info.offset} {ffi.sizeof(info.type)}")
    assert len(structs()) > 25
    assert compiled_layout(tmp_path) == expected


def test_every_exported_function_is_there():
    """Each LS_API function of the headers can be called, and is in the library."""
    names = set(re.findall(r"\b(ls_\w+)\(", re.sub(r"/\*.*?\*/|#define.*?[^\\]\n", "", header_text(), flags=re.S)))
    functions = [name for name in dir(lib) if name.startswith("ls_")]
    assert len(functions) > 100
    for name in functions:
        assert getattr(lib, name) is not None
    missing = {name for name in names if re.search(r"LS_API[^;]*?\b%s\(" % name, header_text()) and name not in functions}
    assert missing == {"ls_data_info", "ls_data_check", "ls_data_info_with"}  # they print to a FILE


def test_options_have_the_defaults_of_the_macros():
    """Every struct with an INIT macro is known to ls_options_init()."""
    macros = {name.lower().replace("_init", "") for name in re.findall(r"#define (LS_\w+_INIT)\b", header_text())}
    known, i = set(), 0
    while lib.ls_options_type_at(i) != ffi.NULL:
        known.add(text(lib.ls_options_type_at(i)))
        i += 1
    assert known == macros - {"ls_train_stored"}
    train = Options("ls_train_options").pointer
    assert (text(train.model), train.batch, train.lr, train.size) == ("resnet18", 128, 0.001, ffi.sizeof("ls_train_options"))


def test_every_status_has_an_exception():
    names, i = [], 0
    for name, value in sorted(ffi.typeof("ls_status").relements.items(), key=lambda item: item[1]):
        names.append(text(lib.ls_status_name(value)))
    assert set(names) - {"ok"} == set(_errors.BY_STATUS)
    for kind in _errors.BY_STATUS.values():
        assert issubclass(kind, lockstep.Error)


def test_every_operator_is_a_method():
    page = open(os.path.join(os.environ["SOURCE_DIR"], "docs", "operators.md")).read()
    for name in set(re.findall(r"^\| `(\w+)` \|", page, flags=re.M)) - {"pack", "linear_map"}:
        assert callable(getattr(lockstep.Graph, name)), name


def test_settings_are_those_of_the_command():
    found = {setting.name: setting for setting in lockstep.settings()}
    assert found["lr"].default == "0.001" and found["optimizer"].values[:2] == ("sgd", "adam")
    assert {"epochs", "batch", "micro_batch", "run", "resume"} <= set(found)


def test_settings_of_trainers_are_typed():
    from lockstep._settings import TrainerSettings

    fields = {name for name, _ in ffi.typeof("ls_trainer_options").fields} - {"size"}
    assert set(TrainerSettings.__annotations__) == fields >= {"lr", "augment", "precision"}


def test_version():
    assert lockstep.version == lockstep.__version__
    with pytest.raises(lockstep.NotFoundError):
        Options("ls_graph_facts")
