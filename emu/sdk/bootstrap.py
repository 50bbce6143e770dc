"""The first Python code that runs for the C libraries; the SDK carries it as a C string, so it must stand alone."""


def start(conf: str, link: int, report: int, host: int) -> None:
    """Find the package as ``aclnn_emu.conf`` says and let it fill the table at ``link``; a failure is written to the pipe ``report``."""
    import os
    import sys

    try:
        paths: list[str] = []
        packages: dict[str, str] = {}
        version = ""
        with open(os.fsdecode(bytes.fromhex(conf)), encoding="utf-8", errors="surrogateescape") as lines:
            for line in lines:
                key, _, value = line.rstrip("\n").partition("=")
                if key == "path":
                    paths.append(value)
                elif key == "package":
                    name, _, place = value.partition("=")
                    packages[name] = place
                elif key == "version":
                    version = value

        def find_packages() -> None:
            # Where the packages lie, whatever the way in which they were installed.
            from importlib.machinery import ModuleSpec
            from importlib.util import spec_from_file_location

            class Finder:
                @staticmethod
                def find_spec(name: str, path: object = None, target: object = None) -> "ModuleSpec | None":
                    place = packages.get(name)
                    if place is None:
                        return None
                    return spec_from_file_location(name, place + "/__init__.py", submodule_search_locations=[place])

            sys.meta_path.append(Finder)

        if host:
            from importlib.util import find_spec

            if find_spec("emu") is None:
                if sys.version.split(".")[:2] != version.split("."):
                    raise ImportError(
                        f"this process is Python {sys.version.split()[0]} without aclnn-emu, and the SDK was built with {version}"
                    )
                sys.path.extend(p for p in paths if p not in sys.path)
                find_packages()
        else:
            sys.path[:] = paths
            find_packages()
        from emu.sdk.bridge import serve

        serve(link, bool(host))
    except BaseException as error:
        os.write(report, f"{type(error).__name__}: {error}"[:1500].encode("utf-8", "replace"))
