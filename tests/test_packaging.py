"""The wheel and the sdist hold every file, and work where nothing else of the checkout is."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SHIPPED = ["ontology/*.ttl", "shapes/*.ttl", "queries/*/*.rq"]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The wheel made from the sdist, as a release makes it."""
    out = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    (wheel,) = out.glob("*.whl")
    return wheel


def test_the_wheel_holds_every_data_file_and_module(built):
    names = set(zipfile.ZipFile(built).namelist())

    data = {f"jidomem/{path.relative_to(ROOT)}" for pattern in SHIPPED for path in ROOT.glob(pattern)}
    code = {str(path.relative_to(ROOT)) for path in (ROOT / "jidomem").rglob("*.py")}
    cli = {f"jidomem_cli/{path.name}" for path in (ROOT / "cli").glob("*.py")}
    own = {f"jidomem/own_memory/{path.relative_to(ROOT / '.jidomem')}" for path in (ROOT / ".jidomem").rglob("*.ttl")}
    assert (data | code | cli | own | {"jidomem/models/uncased.txt"}) - names == set()
    assert own
    assert not [name for name in names if name.startswith(("tests", "bench", "docs")) or name.endswith(".lock")]


def test_the_installed_wheel_runs_the_tour_where_no_checkout_is(built, tmp_path):
    target = tmp_path / "site"
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(target), str(built)]
    subprocess.run(command, check=True, capture_output=True)
    program = (
        f"import sys; sys.path.insert(0, {str(target)!r});"
        " sys.meta_path[:] = [finder for finder in sys.meta_path if 'Editable' not in getattr(finder, '__name__', '')];"
        " import jidomem; assert jidomem.__file__.startswith(sys.path[0]), jidomem.__file__;"
        " sys.argv = ['jidomem', 'demo']; from jidomem_cli.main import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert "Real decisions first: the 13" in done.stdout
