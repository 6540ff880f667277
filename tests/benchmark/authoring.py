"""The names that Benchmark packages use, and their checks. Run with harness/benchmark/python first on sys.path."""

import abc
import base64
import copy
import dataclasses
import json
import os
import pickle
import re
import socket
import sys
import tempfile
import unittest
from pathlib import Path
from types import MappingProxyType
from typing import Generic, Optional, TypeVar

import evopolicygym
from evopolicygym import Program, errors
from evopolicygym.artifacts import Artifact as SameArtifact
from evopolicygym.authoring import (
    Artifact,
    Benchmark,
    BenchmarkFixture,
    BenchmarkSpec,
    Environment,
    EpisodeRecord,
    EpisodeSpec,
    Feedback,
    InvalidAction,
    PolicyFailureCode,
    Step,
    Transition,
    check_benchmark,
)
from evopolicygym.program import ProgramLimits
from evopolicygym.policy import Policy, PolicyContext, TensorValue
from evopolicygym.results import EpisodeResult

import evopolicygym_corridor

SPEC = dict(
    id="x",
    description="A test.",
    observation_space={},
    action_space=[0, 1],
    metadata={},
    environment_parameters={"n": 1},
    max_episode_steps=3,
    primary_metric="score",
    score_direction="minimize",
)


class Values(unittest.TestCase):
    def refuses(self, error, make, cases):
        for case in cases:
            with self.subTest(case=case), self.assertRaises(error):
                make(**case)

    def test_spec(self):
        spec = BenchmarkSpec(**SPEC)
        self.assertEqual((spec.max_episode_steps, spec.score_direction), (3, "minimize"))
        with self.assertRaises(dataclasses.FrozenInstanceError):
            spec.id = "y"
        self.assertEqual(dataclasses.replace(spec, id="y").id, "y")
        self.assertEqual(BenchmarkSpec(**{**SPEC, "metadata": MappingProxyType({"a": 1})}).metadata, {"a": 1})
        wrong = lambda **changes: BenchmarkSpec(**{**SPEC, **changes})
        self.refuses(TypeError, wrong, [
            {"id": 3}, {"description": None}, {"observation_space": object()}, {"action_space": {1}},
            {"metadata": []}, {"environment_parameters": None.__class__}, {"environment_parameters": {1: 2}},
            {"max_episode_steps": 3.0}, {"max_episode_steps": True}, {"max_episode_steps": None},
            {"primary_metric": b"x"}, {"score_direction": 1},
        ])
        self.refuses(ValueError, wrong, [
            {"id": ""}, {"id": "a\nb"}, {"description": " "}, {"max_episode_steps": 0}, {"primary_metric": ""},
            {"score_direction": "up"}, {"environment_parameters": {"x": float("nan")}}, {"metadata": {"x": 1 << 64}},
        ])

    def test_episode_spec(self):
        self.assertEqual(EpisodeSpec(5), EpisodeSpec(environment_seed=5, scenario=None))
        self.assertEqual(EpisodeSpec((1 << 64) - 1, {"a": (1, b"x")}).scenario, {"a": (1, b"x")})
        self.refuses(TypeError, EpisodeSpec, [
            {"environment_seed": True}, {"environment_seed": 1.0}, {"environment_seed": 1, "scenario": {1}}])
        self.refuses(ValueError, EpisodeSpec, [
            {"environment_seed": -1}, {"environment_seed": 1 << 64}, {"environment_seed": 1, "scenario": float("inf")}])

    def test_step(self):
        step = Step(observation=[1.0], reward=1, terminated=True, truncated=False, metrics={"a": 1})
        self.assertIs(type(step.reward), float)
        self.assertEqual(step, Step([1.0], 1.0, True, False, {"a": 1}))
        self.assertEqual(dataclasses.asdict(step)["metrics"], {"a": 1})
        right = {"observation": None, "reward": 0.0}
        wrong = lambda **changes: Step(**{**right, **changes})
        self.refuses(TypeError, wrong, [
            {"reward": "1"}, {"reward": None}, {"reward": True}, {"terminated": 1}, {"truncated": None},
            {"observation": {1: 2}}, {"observation": bytearray(b"x")}, {"metrics": object()}])
        self.refuses(ValueError, wrong, [
            {"reward": float("nan")}, {"reward": float("-inf")}, {"reward": 10**400},
            {"observation": [0.0, float("nan")]}, {"observation": "\ud800"}, {"observation": [[0.0] * 3] * 30000}])

    def test_the_short_ways_of_encoding_give_the_same_bytes(self):
        from evopolicygym._codec import decode, encode
        from evopolicygym._values import public_bytes, trusted_bytes, value_of

        for value in ([0.5], [1e308, 1e308], [float(n) for n in range(64)], [1.0] * 65, [1.0, 2], [], [True], 7, None):
            self.assertEqual(public_bytes(value, "x"), encode(value))
            self.assertEqual(trusted_bytes(value, "x"), encode(value))
            self.assertEqual(repr(value_of(encode(value))), repr(value))
        step = Step([0.25], -1.5, False, True, {"k": "v"})
        self.assertEqual(decode(step._wire), {
            "metrics": {"k": "v"}, "observation": [0.25], "reward": -1.5, "terminated": False, "truncated": True})

    def test_the_order_of_keys_survives(self):
        from evopolicygym import _values

        many = [{"b": i, "a": {"x%d" % i: i, "w%d" % i: 0}} for i in range(300)]
        for value in ({"b": 1, "a": 2}, [({"b": {"d": 1, "c": {}}},)], many, (_values._MARK,), {"a": 1}, [], 5):
            wire = _values.value_of(_values.private_bytes(value, "x"))
            self.assertEqual(repr(_values.private_value(wire)[0]), repr(value))

    def test_records(self):
        spec, step = EpisodeSpec(1), Step(None, 2.0)
        record = EpisodeRecord(spec=spec, policy_seed=2, initial_observation=0, transitions=[Transition(1, step)] * 2,
                               policy_failure="timeout")
        self.assertIsInstance(record.transitions, tuple)
        self.assertEqual(record.policy_failure, "timeout")
        self.assertEqual({"timeout": 1}[record.policy_failure], 1)
        self.assertEqual(f"{record.policy_failure} {record.policy_failure!r}", "timeout 'timeout'")
        self.assertEqual(json.dumps([record.policy_failure]), '["timeout"]')
        self.assertEqual(record.policy_failure.value, "timeout")
        self.assertIs(record.policy_failure, PolicyFailureCode.TIMEOUT)
        self.assertEqual(record.total_reward, 4.0)
        self.refuses(TypeError, EpisodeRecord, [
            {"spec": 1, "policy_seed": 2, "initial_observation": 0},
            {"spec": spec, "policy_seed": "2", "initial_observation": 0},
            {"spec": spec, "policy_seed": 2, "initial_observation": 0, "transitions": [step]},
            {"spec": spec, "policy_seed": 2, "initial_observation": object()},
            {"spec": spec, "policy_seed": 2, "initial_observation": 0, "policy_failure": 3}])
        with self.assertRaises(ValueError):
            EpisodeRecord(spec, 2, 0, (), "lazy")
        for wrong in ((1, None), ({1}, step)):
            with self.assertRaises(TypeError):
                Transition(*wrong)

    def test_feedback_and_artifacts(self):
        self.assertIs(Artifact, SameArtifact)
        artifact = Artifact(name="a/b.txt", media_type="text/plain", content=b"x")
        self.assertEqual((artifact.retention, artifact.data), ("permanent", b"x"))
        self.assertEqual(Artifact("a/b.txt", "text/plain", data=b"x"), artifact)
        self.assertEqual(Artifact(path="a/b.txt", mime_type="text/plain", bytes=b"x"), artifact)
        for arguments, named in ((("a", "text/plain", b"x"), {"data": b"x"}), (("a", "text/plain"), {}), ((), {}),
                                 (("a", "text/plain", b"x"), {"other": b"x"}), (("a",), {"path": "a", "content": b""})):
            with self.assertRaisesRegex(TypeError, "Artifact (needs its|takes name)"):
                Artifact(*arguments, **named)
        self.assertEqual(Feedback(1, {"a": 1}, [artifact]).artifacts, (artifact,))
        right = {"name": "a", "media_type": "text/plain", "content": b""}
        wrong = lambda **changes: Artifact(**{**right, **changes})
        self.refuses(ValueError, wrong, [
            {"name": name} for name in ("", "/a", "a/", "a//b", ".", "a/..", "a\\b", "a\0b")
        ] + [{"media_type": "a\nb"}, {"media_type": ""}, {"retention": "never"}, {"content": bytes(1 << 24) + b"x"}])
        self.refuses(TypeError, wrong, [{"name": 1}, {"media_type": None}, {"content": "x"}, {"retention": None}])
        self.refuses(TypeError, Feedback, [
            {"score": "1"}, {"score": True}, {"score": 1.0, "content": {1}}, {"score": 1.0, "artifacts": [b"x"]}])
        self.refuses(ValueError, Feedback, [
            {"score": float("nan")}, {"score": 1.0, "artifacts": [artifact, artifact]},
            {"score": 1.0, "artifacts": [Artifact(str(n), "a/b", b"") for n in range(1025)]}])

    def test_invalid_action(self):
        self.assertEqual(InvalidAction("no").reason, "no")
        self.assertEqual(InvalidAction(reason="no"), InvalidAction("no"))
        self.assertEqual((InvalidAction(message="no").message, InvalidAction().reason), ("no", ""))
        self.assertEqual(InvalidAction(code="bad", detail="no").reason, "bad")
        self.assertEqual(len({one for one in (InvalidAction("no"), InvalidAction("no"), InvalidAction("yes"))}), 2)
        self.assertIs(errors.InvalidActionError, InvalidAction)
        with self.assertRaises(Exception):
            raise InvalidAction("no")

    def test_other_names(self):
        self.assertIs(evopolicygym.Program, Program)
        self.assertIs(evopolicygym.Benchmark, Benchmark)
        self.assertEqual(evopolicygym.authoring.Step, Step)
        self.assertTrue(issubclass(errors.SomethingError, errors.EvoPolicyGymError))
        from evopolicygym import artifacts, authoring, program, results

        for module in (authoring, artifacts, results, program, errors):  # a name is found wherever a package looks for it
            for name in ("Step", "Artifact", "EpisodeRecord", "Program", "PolicyValue", "ProgramError"):
                self.assertIs(getattr(module, name), getattr(evopolicygym, name))
            with self.assertRaises(AttributeError):
                module.nothing_like_it
        self.assertEqual(BenchmarkFixture("b", (), "more", named=1).named, 1)
        with self.assertRaises(AttributeError):
            errors.something
        with self.assertRaises(ImportError):
            from evopolicygym import nothing_like_it
        self.assertEqual(EpisodeResult("completed", 1.0, 2).failure, None)
        self.assertTrue(callable(Policy.act) and PolicyContext and TensorValue and Environment[int])


class AsDataclasses(unittest.TestCase):
    MADE = (
        BenchmarkSpec(**SPEC),
        EpisodeSpec(1, (1, "a")),
        Step((1,), 1.0, False, True, "m"),
        Feedback(1.0, "x", (Artifact("a", "text/plain", b""),)),
        Artifact("a", "text/plain", b"", "bulk"),
        Transition(1, Step(0, 0.0)),
        EpisodeRecord(EpisodeSpec(1), 2, None, (), "timeout"),
        TensorValue("uint8", (2,), b"ab"),
        PolicyContext({}, [], {"a": 1}, {}, 3),
    )

    def test_they_are_frozen_and_compared_copied_replaced_and_pickled(self):
        for one in self.MADE:
            with self.subTest(one=one):
                first = dataclasses.fields(one)[0].name
                for change in (lambda: setattr(one, first, 1), lambda: delattr(one, first), lambda: setattr(one, "new", 1)):
                    with self.assertRaises(AttributeError):
                        change()
                with self.assertRaises(dataclasses.FrozenInstanceError):
                    setattr(one, first, 1)
                for other in (copy.copy(one), copy.deepcopy(one), pickle.loads(pickle.dumps(one)), dataclasses.replace(one)):
                    self.assertEqual(other, one)
                    self.assertIs(type(other), type(one))
                self.assertNotEqual(one, 5)
                self.assertTrue(repr(one).startswith(type(one).__name__ + "("))
                self.assertEqual(type(one)(*(getattr(one, field.name) for field in dataclasses.fields(one))), one)
        for one in self.MADE[:4] + self.MADE[5:7]:
            with self.assertRaisesRegex(AttributeError, "has no rewards; it has .*" + dataclasses.fields(one)[-1].name):
                one.rewards
        for one in self.MADE[:7]:
            self.assertEqual(set(vars(one)), {field.name for field in dataclasses.fields(one)})
            self.assertEqual(set(dataclasses.asdict(one)), set(vars(one)))
        self.assertEqual(len({EpisodeSpec(1, "a"), EpisodeSpec(1, "a"), EpisodeSpec(2, "a")}), 2)

    def test_a_subclass_with_an_init_of_its_own_is_checked_when_it_is_sent(self):
        @dataclasses.dataclass(frozen=True)
        class Level(EpisodeSpec):
            level: int = 0

        @dataclasses.dataclass(frozen=True)
        class Told(Step):
            note: str = ""

        self.assertEqual(Level(1, level=3)._wire, EpisodeSpec(1)._wire)
        self.assertEqual(Told(1, 2.0, note="x")._wire, Step(1, 2.0)._wire)
        for wrong, error in ((Told({1}, 2.0), TypeError), (Told(1, float("nan")), ValueError), (Told(1, 0.0, 1), TypeError),
                             (Level(1, {2}), TypeError)):
            with self.assertRaises(error):
                wrong._wire
        self.assertFalse(hasattr(Told(1, 2.0), "nothing"))

    def test_interfaces_need_not_be_subclassed(self):
        class World:
            def reset(self): ...
            def step(self, action): ...
            def close(self): ...

        class Both(Environment, abc.ABC):
            pass

        class Named(Benchmark, Generic[TypeVar("T")]):
            pass

        self.assertIsInstance(World(), Environment)
        self.assertNotIsInstance(World(), Benchmark)
        self.assertNotIsInstance(object(), Environment)
        self.assertNotIsInstance(World(), Both)
        self.assertTrue(isinstance(Both(), Environment) and isinstance(Named(), Benchmark))

    def test_what_numpy_has_is_refused_with_what_to_do(self):
        class Scalar:
            __module__ = "numpy"

        for make, hint in ((lambda: Step(0, Scalar()), "float()"), (lambda: Step(0, 0.0, Scalar()), "bool()"),
                           (lambda: EpisodeSpec(Scalar()), "int()"), (lambda: Step(Scalar(), 0.0), ".item()")):
            with self.assertRaisesRegex(TypeError, re.escape(hint)):
                make()

    def test_what_is_taken_can_be_sent(self):
        def nested(levels):
            value = 0
            for _ in range(levels):
                value = {"b": value, "a": 1}
            return value

        for make, most in ((lambda value: EpisodeSpec(1, value), 60), (lambda value: Step(0, 0.0, metrics=value), 60),
                           (lambda value: Feedback(0.0, value), 32), (lambda value: Step(value, 0.0), 32)):
            make(nested(most))
            with self.assertRaisesRegex(ValueError, "over %d levels" % most):
                make(nested(most + 1))
        with self.assertRaisesRegex(ValueError, "over 16777216 bytes"):
            Feedback(0.0, "x" * (1 << 24))

    def test_values_that_hold_themselves_are_refused(self):
        around = []
        around.append(around)
        for make in (lambda: Step(around, 0.0), lambda: Step(0, 0.0, metrics=around), lambda: EpisodeSpec(1, {"a": around}),
                     lambda: Feedback(0.0, around)):
            with self.assertRaises(ValueError):
                make()


class Distribution(unittest.TestCase):
    def test_it_is_found_as_an_installed_one(self):
        from importlib import metadata

        self.assertEqual(metadata.version("evopolicygym"), evopolicygym.__version__)
        self.assertFalse(metadata.requires("evopolicygym"))
        self.assertEqual(metadata.distribution("evopolicygym").read_text("top_level.txt").split(), ["evopolicygym"])
        self.assertIn("Program", dir(evopolicygym))
        names = {}
        exec("from evopolicygym import *\nfrom evopolicygym.authoring import *", names)
        self.assertIs(names["Program"], Program)
        self.assertIs(names["check_benchmark"], check_benchmark)


class Baselines(unittest.TestCase):
    def find(self, layout, source=""):
        """The policy.py of the baseline that is found in a package of these files."""
        from evopolicygym._baseline import find

        with tempfile.TemporaryDirectory() as directory:
            name = "package_%s" % os.path.basename(directory).replace("-", "_").lower()
            files = dict(layout) if isinstance(layout, dict) else {path: path for path in layout}
            for path, text in {**files, "__init__.py": source}.items():
                full = Path(directory, name, path)
                full.parent.mkdir(parents=True, exist_ok=True)
                full.write_text(text)
            sys.path.insert(0, directory)
            try:
                return find(object(), name).files["policy.py"].decode()
            finally:
                sys.path.remove(directory)

    def test_where_they_are_looked_for(self):
        here = "from pathlib import Path\nHERE = Path(__file__).parent\n"
        self.assertEqual(self.find(["baseline/policy.py", "other/policy.py"]), "baseline/policy.py")
        self.assertEqual(self.find(["x/policy.py", "baseline/policy.py"], here + "BASELINE_DIR = HERE / 'x'"), "x/policy.py")
        self.assertEqual(self.find(["x/policy.py", "y/policy.py"], here + "def weak_baseline(): return HERE / 'y'"),
                         "y/policy.py")
        self.assertEqual(self.find(["a/b/c/policy.py", "tests/policy.py"]), "a/b/c/policy.py")
        self.assertEqual(self.find([], "def make_baseline(): return {'policy.py': 'made'}"), "made")
        told = "from evopolicygym import Program\ndef p(of=1) -> %s: return Program({'policy.py': b'told'})"
        self.assertEqual(self.find([], told % "Program"), "told")
        self.assertEqual(self.find([], told % "'evopolicygym.Program'"), "told")
        policy = "def make_policy(context): ..."
        for name in ("baseline.py", "policy.py"):
            self.assertEqual(self.find({name: policy}), policy)
        with self.assertRaisesRegex(LookupError, "several Programs.*: .*/a, .*/b$"):
            self.find(["a/policy.py", "b/policy.py"])
        for layout, source in ((["a/policy.py", "b/policy.py"], ""), ([], "def baseline(needed): 1/0")):
            with self.assertRaises(LookupError):
                self.find(layout, source)


class Parameters(unittest.TestCase):
    def test_what_a_text_stands_for(self):
        import runner

        def factory(a, b: str, c: "str | None", d: Optional[str], e: float, f: "float | None", g: "int | float", h: int,
                    i: bool): ...

        given = {
            "a": ["3", 3], "b": ["3", "3"], "c": ["3", "3"], "d": ["None", None], "e": ["3", 3.0], "f": ["null", None],
            "g": ["3", 3], "h": ["4x4", "4x4"], "i": ["True", True],
        }
        words = ["%s=%s" % (name, text) for name, (text, _) in given.items()]
        made = runner.parameters_of(factory, words)
        self.assertEqual(repr(made), repr({name: value for name, (_, value) in given.items()}))
        for text, value in (("0.5", 0.5), ("true", True), ("False", False), ("null", None), ("[1, 2.0]", [1, 2.0]),
                            ('"x"', "x"), ("NaN", "NaN"), ("a=b", "a=b"), ("", "")):
            self.assertEqual(repr(runner.parameters_of(factory, ["a=" + text])), repr({"a": value}))


class Records(unittest.TestCase):
    def test_a_step_out_of_a_record_is_a_step(self):
        import runner

        made = Step([1.0, 2.0], 3.0, True, False, {"b": 1, "a": {"z": None}})
        fields = {field.name: getattr(made, field.name) for field in dataclasses.fields(Step)}
        step = runner.restored(Step, **fields)
        self.assertEqual((step, repr(step), step._wire), (made, repr(made), made._wire))
        self.assertEqual(dataclasses.replace(step, reward=4).reward, 4.0)
        self.assertEqual(copy.deepcopy(step), made)
        self.assertEqual(pickle.loads(pickle.dumps(step)), made)
        self.assertFalse(hasattr(step, "nothing"))
        with self.assertRaises(dataclasses.FrozenInstanceError):
            step.reward = 1.0

    def test_they_are_a_tuple_to_whoever_asks(self):
        import runner

        class Two(runner.Records):
            def __getitem__(self, index):
                return ("x", "y")[index]

        records = Two(None, 2, None)
        self.assertIsInstance(records, tuple)
        self.assertEqual((len(records), list(records), tuple(records), records + (1,)), (
            2, ["x", "y"], ("x", "y"), ("x", "y", 1)))
        self.assertTrue(records == ("x", "y") and records != ("x",) and "y" in records and not "z" in records)
        self.assertEqual((1,) + records, (1, "x", "y"))
        for one in (copy.copy(records), copy.deepcopy(records), pickle.loads(pickle.dumps(records))):
            self.assertEqual((type(one), one), (tuple, ("x", "y")))
        self.assertEqual(json.dumps(records), '["x", "y"]')
        first, second = records
        self.assertEqual((first, second, [*records], records.index("y"), records.count("x"), sorted(records)[0]), (
            "x", "y", ["x", "y"], 1, 1, "x"))


class Conformance(unittest.TestCase):
    def test_a_right_one_and_wrong_ones(self):
        fixture = BenchmarkFixture(evopolicygym_corridor.make_benchmark(slip=0.5), actions=[[1] * 40, [0, 2]], seed=3)
        report = check_benchmark(fixture)
        self.assertTrue(report.ok, report)

        class Short(evopolicygym_corridor.CorridorBenchmark):
            def episodes(self, split, seed, count):
                return ()

        class Random(evopolicygym_corridor.CorridorBenchmark):
            def make_environment(self, episode):
                import os

                return super().make_environment(EpisodeSpec(int.from_bytes(os.urandom(8), "big"), episode.scenario))

        flat = BenchmarkFixture(benchmark=evopolicygym_corridor.make_benchmark, action_sequences=[1] * 40, episode_count=3)
        self.assertTrue(check_benchmark(flat).ok)
        self.assertEqual([issue.code for issue in check_benchmark(object()).issues], ["spec", "episodes", "episodes"])

        config = evopolicygym_corridor.benchmark.CorridorConfig(slip=0.5, length=30)
        self.assertEqual([issue.code for issue in check_benchmark(Short(config)).issues], ["episodes"])
        self.assertEqual([issue.code for issue in check_benchmark(Random(config), actions=[1] * 40).issues],
                         ["determinism", "determinism"])
        report = check_benchmark(Random(config), actions=[[1] * 40])
        self.assertEqual([issue.code for issue in report.issues], ["determinism"])


class Programs(unittest.TestCase):
    def test_the_vectors(self):
        vectors = json.loads(Path(SOURCE, "tests/vectors/data/programs.json").read_text())
        self.assertGreater(len(vectors), 10)
        for case in vectors:
            with self.subTest(case=case["name"]), tempfile.TemporaryDirectory() as directory:
                root = Path(directory, "program")
                if lay_out(case, root):
                    self.compare(case, root)

    def compare(self, case, root):
        limits = ProgramLimits(**case.get("limits", {}))
        if case["ok"]:
            program = Program.from_directory(root, limits=limits)
            self.assertEqual(program.digest, case["digest"])
            self.assertEqual(list(program.files), case["listed_files"])
        else:
            with self.assertRaises(getattr(errors, case["error_class"])):
                Program.from_directory(root, limits=limits)


def lay_out(case, root):
    """Makes the case's directory; false for what can't be made here."""
    if case["name"] == "REJ-root-missing":
        return True
    if case["name"] == "REJ-root-is-file":
        root.write_text("")
        return True
    root.mkdir()
    for name, file in case["files"].items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(file["base64"]) if "base64" in file else file["text"].encode())
    for file in case.get("raw_name_files", ()):
        Path(os.fsdecode(os.fsencode(root) + b"/" + base64.b64decode(file["path_base64"]))).write_text(file["text"])
    setup = case.get("setup", "")
    link = re.match(r"(symlink|hard link) (\S+) -> (\S+)", setup)
    if link and link[1] == "symlink":
        (root / link[2]).symlink_to(link[3])
    elif link:
        os.link(root / link[3], root / link[2])
    elif setup.startswith("mkfifo "):
        os.mkfifo(root / setup.split()[1])
    elif setup.startswith("unix socket "):
        socket.socket(socket.AF_UNIX).bind(str(root / setup.split()[2]))
    return not setup or bool(link) or setup.startswith(("mkfifo", "unix"))


if __name__ == "__main__":
    SOURCE = sys.argv.pop(1)
    unittest.main()
