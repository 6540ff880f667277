"""Whole Runs of one real agent CLI, from its installation in a cache directory, against the scripted model.

usage: real_agents.py AGENT     (test_real_*.sh)

The CLI reads its task, edits the Program, submits, reads Feedback, improves, submits again and finishes, because the
model's script says so; everything in between is the CLI's own. Then the same with a model that fails in each way."""
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import time

from agent_runs import BUILD, HERE, SOURCE, Result, case, check_no_secret, check_nothing_left, conclude, environment_of, expect, \
    expect_equal, processes_of, run_agent, run_command, skip

CACHE = pathlib.Path(os.environ.get("EPG_AGENT_CLIS") or
                     pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") /
                     "evopolicygym/agent-clis")
BIN = CACHE / "node_modules" / ".bin"

# binary, the address that it wants, model, variable of its key, options, whether it keeps the key from its tools
AGENTS = {
    "codex": ("codex", "/v1", "gpt-5-codex", "CODEX_API_KEY", [], True),
    "claude-code": ("claude", "", "claude-sonnet-4-5", "ANTHROPIC_API_KEY", ["allow-root=yes", "max-retries=1"], False),
    "kimi-code": ("kimi", "/v1", "kimi-k2", "KIMI_MODEL_API_KEY", ["max-attempts=2"], False),
    "gemini-cli": ("gemini", "", "gemini-2.5-pro", "GEMINI_API_KEY", [], False),
    "qwen-code": ("qwen", "/v1", "qwen3-coder-plus", "OPENAI_API_KEY", [], False),
    "opencode": ("opencode", "/v1", "scripted", "OPENCODE_PROVIDER_KEY", [], False),
}
RESUMES = ["codex", "claude-code"]
SECRET = "zq-7Hd0s9KxVt2LmQe4RyUw8PbNc1JfGa5"

SCRIPT = r"""
ls; head -3 instructions.md
---
cat > program/policy.py <<'END'
from evopolicygym.policy import Policy


class Lean(Policy):
    def act(self, observation):
        return 1 if observation[2] > 0 else 0


def make_policy(context):
    return Lean()
END
---
evopolicygym-session submit program --episodes 0:4
---
cat feedback/latest.json; env | sort > analysis-of-environment; grep -i key analysis-of-environment; rm analysis-of-environment
---
sed -i 's/observation\[2\] > 0/observation[2] + 0.5 * observation[3] > 0/' program/policy.py
---
evopolicygym-session submit program --episodes 0:4
---
evopolicygym-session finish submission-000002
""".lstrip("\n")
COMMANDS = [part.strip("\n") for part in SCRIPT.split("---\n")]


@contextlib.contextmanager
def model(place, mode="ok", fail_after=0, commands=None):
    script = place.state / "script"
    script.write_text("\n---\n".join(commands or COMMANDS))
    process = subprocess.Popen([sys.executable, str(HERE / "model/scripted_model.py"), "--script", str(script), "--state",
                                str(place.state), "--mode", mode, "--fail-after", str(fail_after)],
                               stdin=subprocess.DEVNULL)
    try:
        port = place.state / "port"
        while not port.exists():
            expect(process.poll() is None, "the scripted model does not start")
            time.sleep(0.05)
        yield "http://127.0.0.1:" + port.read_text().strip()
    finally:
        process.kill()
        process.wait()


def words_of(agent, address, *more):
    _, suffix, name, _, options, _ = AGENTS[agent]
    given = [word for option in [*options, "base-url=" + address + suffix] for word in ("--agent-option", option)]
    return ["--agent", agent, "--model", name, *given, *more]


def run_real(place, agent, address, *more):
    return run_agent(place, words_of(agent, address, *more), secrets={AGENTS[agent][3]: SECRET}, path=str(BIN))


def text_of(value):
    return value if isinstance(value, str) else json.dumps(value)


def check_tool_calls(transcript):
    """Every command of the script was called and answered, in its order."""
    calls = [line for line in transcript if line["event"] == "tool_call"]
    results = {line["id"]: line for line in transcript if line["event"] == "tool_result"}
    expect_equal(len(calls), len(COMMANDS), "tool calls")
    for call, command in zip(calls, COMMANDS):
        first = command.splitlines()[0].split(">")[0].split("'")[0].strip()
        expect(first in text_of(call["input"]), "%r is not in the call %r" % (first, call["input"]))
        expect(call["id"] in results, "the call %s has no result" % call["id"])
    expect("submission-000001" in results[calls[3]["id"]]["output"], "Feedback was not read")
    expect("# Your task" in results[calls[0]["id"]]["output"], "the task was not read")


def success(place, agent, *more):
    with model(place) as address:
        result = run_real(place, agent, address, *more)
    record = result.record()
    expect_equal(result.code, 0, "exit code (%s)" % result.err)
    expect_equal(record["terminal_reason"], "finished", "terminal reason")
    expect_equal(record["final_submission_id"], "submission-000002", "final submission")
    expect(record["submissions"][1]["score"] > record["submissions"][0]["score"], "the Program did not improve")
    transcript = result.transcript()
    check_tool_calls(transcript)
    expect_equal(transcript[-1]["event"], "end", "last line of the transcript")
    expect_equal(transcript[-1]["lines_not_understood"], 0, "lines of the stream that were not understood")
    reported = json.loads((place.state / "usage.json").read_text())
    usage = record["host"]["usage"]
    expect_equal(usage["tokens_known"], "exact", "how well tokens are known")
    for name in ("input", "cached_input", "output"):
        expect_equal(usage["tokens"][name], reported[name], "tokens: " + name)
    expect_equal([one["submission_id"] for one in record["host"]["usage_by_submission"]],
                 ["submission-000001", "submission-000002"], "use by submission")
    expect_equal(record["host"]["agent_cause"], "finished", "cause")
    expect("agent_error" not in record["host"], "an error: %r" % record["host"].get("agent_error"))
    if AGENTS[agent][5]:
        environment = [line for line in transcript if line["event"] == "tool_result"][3]["output"]
        expect("redacted" not in environment, "the key reached the tools: " + environment)
    check_nothing_left(place)
    check_no_secret(place, {"key": SECRET})


def failure(place, agent, mode, kind, side):
    with model(place, mode, fail_after=3) as address:
        result = run_real(place, agent, address)
    record = result.record()
    expect_equal(record["terminal_reason"], "agent_failed", "terminal reason")
    error = record["host"].get("agent_error") or {}
    expect_equal((error.get("kind"), error.get("side")), (kind, side), "error (%s)" % error.get("message"))
    expect_equal(record["host"]["agent_cause"], "provider" if side == "provider" else "exited", "cause")
    expect_equal(len(record["submissions"]), 1, "submissions")
    check_nothing_left(place)
    check_no_secret(place, {"key": SECRET})


def wait_for(condition, what):
    deadline = time.monotonic() + 120
    while not condition():
        expect(time.monotonic() < deadline, "never came: " + what)
        time.sleep(0.1)


def resumed(place, agent):
    """The Host is killed while the agent works; `resume` lets the CLI go on with its own session, in its own home."""
    environment = environment_of(place, {AGENTS[agent][3]: SECRET}, path=str(BIN))
    pause = place.state / "go-on"
    held = COMMANDS[:4] + ["while [ ! -e %s ]; do sleep 0.2; done" % pause] + COMMANDS[4:]
    with model(place, commands=held) as address:
        host = subprocess.Popen(run_command(place, words_of(agent, address)), env=environment, stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=place.root)
        transcript = place.run / "agent/transcript.jsonl"
        wait_for(lambda: transcript.exists() and "go-on" in transcript.read_text("utf-8", "replace"), "the fifth command")
        time.sleep(1)  # the CLI writes its own session down after it has told of the call
        host.kill()
        host.wait()
        wait_for(lambda: not processes_of(place), "the end of what the killed Host left")
        pause.touch()
        done = subprocess.run([str(BUILD / "evopolicygym"), "resume", str(place.run)], env=environment,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=200, check=False,
                              cwd=place.root)
    expect_equal(done.returncode, 0, "exit code (%s)" % done.stdout.decode("utf-8", "replace"))
    result = Result(place, 0, "", "")
    record = result.record()
    expect_equal((record["terminal_reason"], record["final_submission_id"]), ("finished", "submission-000002"), "end")
    lines = result.transcript()
    openings = [line for line in lines if line["event"] == "transcript"]
    expect_equal(len(openings), 2, "starts of the agent in its transcript")
    first = [line for line in lines if line["event"] == "tool_call" and "head -3" in text_of(line["input"])]
    expect_equal(len(first), 1, "times that the first command was asked for: the session did not go on")
    expect_equal(record["host"]["usage"]["tokens_known"], "lower_bound", "how well tokens are known")
    check_nothing_left(place)
    check_no_secret(place, {"key": SECRET})


def silence(place, agent):
    with model(place, "silent") as address:
        result = run_real(place, agent, address, "--agent-idle", "8")
    record = result.record()
    expect_equal(record["terminal_reason"], "agent_failed", "terminal reason")
    expect_equal(record["host"]["agent_cause"], "idle", "cause")
    check_nothing_left(place)


FAILURES = [("401", "login", "user"), ("429", "rate_limit", "provider"), ("529", "overload", "provider"),
            ("drop", "network", "provider"), ("quota", "quota", "user")]


def has_sandbox():
    """Whether a Policy can be contained here: the Host says so before it makes anything."""
    done = subprocess.run([str(BUILD / "evopolicygym"), "evaluate", str(SOURCE / "programs/examples/cartpole"), "--benchmark",
                           "cartpole", "--episodes", "1", "--execution", "sandbox"], stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    return done.returncode == 0


def main():
    agent = sys.argv[1]
    if not (BIN / AGENTS[agent][0]).exists():
        skip("real " + agent, "not installed in %s; tests/agents/install-clis.sh installs it" % CACHE)
        conclude()
    case("%s: a whole Run" % agent, success, agent)
    if has_sandbox():
        case("%s: a whole Run in the sandbox" % agent, success, agent, "--execution", "sandbox")
    else:
        skip("%s in the sandbox" % agent, "there is none on this machine")
    for mode, kind, side in FAILURES:
        case("%s: %s" % (agent, mode), failure, agent, mode, kind, side)
    case("%s: a model that never answers" % agent, silence, agent)
    if agent in RESUMES:
        case("%s: the Host is killed, and the Run resumed" % agent, resumed, agent)
    conclude()


if __name__ == "__main__":
    main()
