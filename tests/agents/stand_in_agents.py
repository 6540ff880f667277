"""Whole Runs with agents that are not installed: recorded streams replayed by a stand-in, a CLI that the project has not heard
of and one JSON file knows, and agents that behave badly."""
import json
import os
import stat
import subprocess
import sys

from agent_runs import BUILD, HERE, SOURCE, case, check_no_secret, check_nothing_left, conclude, expect, expect_equal, run_agent

STREAMS = HERE / "streams"
FINISH = ["evopolicygym-session submit program --episodes 0:2", "evopolicygym-session finish submission-000001"]
SECRET = "zq-7Hd0s9KxVt2LmQe4RyUw8PbNc1JfGa5"


def stand_in(place, agent, orders, *more):
    """A Run of the adapter `agent` whose executable is the stand-in."""
    file = place.root / "orders.json"
    file.write_text(json.dumps(orders))
    binary = place.root / "stand-in"
    binary.write_text("#!/bin/sh\nEPG_STAND_IN='%s' exec '%s' -B '%s' \"$@\"\n" % (file, sys.executable, HERE / "stand_in.py"))
    binary.chmod(0o755)
    return run_agent(place, ["--agent", agent, "--model", "m1", "--agent-executable", str(binary), *more])


def recorded(place, stream, agent, tokens, cost):
    result = stand_in(place, agent, {"version": "9.9.9", "stdout": str(STREAMS / (stream + ".ndjson")), "commands": FINISH})
    record = result.record()
    expect_equal(record["terminal_reason"], "finished", "terminal reason")
    usage = record["host"]["usage"]
    expect_equal(usage["tokens"]["input"], tokens, "tokens in")
    expect_equal(usage["tokens_known"], "exact" if tokens is not None else "unknown", "how well tokens are known")
    expect_equal(usage["cost_known"], "exact" if cost else "unknown", "how well the cost is known")
    transcript = result.transcript()
    calls = [line for line in transcript if line["event"] == "tool_call"]
    expect_equal(len(calls), 1, "tool calls")
    expect("echo changed" in json.dumps(calls[0]["input"]), "the call: %r" % calls[0])
    notes = [line for line in transcript if line["event"] == "note"]
    expect_equal([(note["name"], note["id"]) for note in notes], [("submission", "submission-000001")], "notes")
    expect_equal(result.json("agent/invocation.json")["agent"]["cli_version"], "9.9.9", "version")
    check_nothing_left(place)


def recorded_failure(place, stream, agent, kind, side):
    orders = {"stdout": str(STREAMS / (stream + ".ndjson")), "exit": 1}
    if (STREAMS / (stream + ".stderr.txt")).exists():
        orders["stderr"] = str(STREAMS / (stream + ".stderr.txt"))
    record = stand_in(place, agent, orders).record()
    expect_equal(record["terminal_reason"], "agent_failed", "terminal reason")
    error = record["host"].get("agent_error") or {}
    expect_equal((error.get("kind"), error.get("side")), (kind, side), "error (%s)" % error.get("message"))


INVENTED = r"""#!/usr/bin/env python3
import json, os, subprocess, sys
if sys.argv[1:] == ["version", "--short"]:
    print("invented agent, build 7.0.4")
    sys.exit(0)
task = sys.stdin.read()
print("this line is no JSON")
def say(**what):
    print(json.dumps(what), flush=True)
def do(command):
    done = subprocess.run(command, shell=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return {"n": "act-1", "order": json.dumps({"run": command}), "outcome": done.stdout.decode(), "code": done.returncode}
say(k="hello", who={"name": "session of mine", "brain": sys.argv[2]})
settings = open(os.environ["INVENTED_HOME"] + "/invented.ini").read()
say(k="say", words="I was told %d bytes" % len(task.encode()))
say(k="tick")
say(k="say", words=", with " + settings + " and " + os.environ["INVENTED_TOKEN"])
say(k="acts", turn=1, acts=[do("evopolicygym-session submit program --episodes 0:2")], cost={"heard": 10, "remembered": 5, "said": 2, "coins": 0.25})
say(k="acts", turn=1, acts=[], cost={"heard": 20, "remembered": 5, "said": 3, "coins": 0.5})
say(k="acts", turn=2, acts=[do("evopolicygym-session finish submission-000009"), do("evopolicygym-session finish submission-000001")], cost={"heard": 1, "said": 1, "coins": 0.125})
say(k="bye", words=" ".join(sys.argv[1:]))
"""


def invented_binary(place, text):
    binary = place.root / "bin" / "invented-agent"
    binary.parent.mkdir()
    binary.write_text(text)
    binary.chmod(0o755)
    return str(binary.parent)


def invented(place):
    path = invented_binary(place, INVENTED)
    secrets = {"INVENTED_TOKEN": SECRET}
    result = run_agent(place, ["--agent-file", str(HERE / "invented-agent.json"), "--agent-option", "colour=green"], secrets,
                       path=path)
    record = result.record()
    expect_equal(record["terminal_reason"], "finished", "terminal reason")
    identity = result.json("agent/invocation.json")["agent"]
    expect_equal(identity, {"provider": "invented", "model": "brain-1", "colour": "green", "cli_version": "7.0.4"}, "identity")
    usage = record["host"]["usage"]
    expect_equal(usage["tokens"], {"input": 26, "cached_input": 5, "cache_write": 0, "output": 4, "reasoning": 0}, "tokens")
    expect_equal((usage["tokens_known"], usage["cost"], usage["cost_known"]), ("exact", 0.625, "exact"), "use")
    transcript = result.transcript()
    task = (place.run / "agent/instructions.md").read_bytes()
    message = [line for line in transcript if line["event"] == "message"]
    expect_equal(len(message), 1, "messages")
    expect_equal(message[0]["text"], "I was told %d bytes, with [lamp]\ncolour = green\nbrain = \"brain-1\"\n and [redacted]"
                 % len(task), "message")
    outcomes = [(line["failed"], line["exit_code"]) for line in transcript if line["event"] == "tool_result"]
    expect_equal(outcomes, [(False, 0), (True, 1), (False, 0)], "outcomes")
    end = transcript[-1]
    expect_equal((end["lines"], end["lines_not_understood"]), (9, 1), "lines")
    arguments = result.json("agent/invocation.json")["command"]
    expect_equal(arguments[1:5], ["work", "--brain=brain-1", "--calm", "--old-style"], "arguments")
    check_nothing_left(place)
    check_no_secret(place, secrets)


def evopolicygym(place, *words, path=None, variables=None):
    environment = {"PATH": (path + ":" if path else "") + os.environ["PATH"], "HOME": str(place.home), "LANG": "C.UTF-8",
                   "TMPDIR": str(place.temporary), **(variables or {})}
    done = subprocess.run([str(BUILD / "evopolicygym"), *words], env=environment, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, timeout=120, cwd=place.root)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def invented_is_checked(place):
    path = invented_binary(place, INVENTED)
    file = str(HERE / "invented-agent.json")
    code, out, _ = evopolicygym(place, "agent", "check", "--agent-file", file, "--agent-option", "colour=red", "--json",
                                path=path)
    report = json.loads(out)
    expect_equal((code, report["ready"]), (1, False), "without a login")
    expect_equal({line["what"]: line["state"] for line in report["checks"]},
                 {"executable": "ok", "version": "note", "login": "missing"}, "checks")
    code, out, _ = evopolicygym(place, "agent", "check", "--agent-file", file, "--agent-option", "colour=red", path=path,
                                variables={"INVENTED_TOKEN": "x"})
    expect_equal((code, out.splitlines()[-1]), (0, "ready"), "with a login")
    own = place.home / ".config/evopolicygym/agents"
    own.mkdir(parents=True)
    (own / "invented.json").write_text((HERE / "invented-agent.json").read_text())
    code, out, _ = evopolicygym(place, "agent", "list", "--json", path=path)
    row = next(one for one in json.loads(out)["agents"] if one["name"] == "invented")
    expect_equal((code, row["built_in"], row["version"], row["tested"]), (0, False, "7.0.4", False), "list")
    code, out, _ = evopolicygym(place, "agent", "show", "invented", path=path, variables={"INVENTED_TOKEN": SECRET})
    expect(code == 2, "colour is required and has no pattern that COLOUR matches: %d" % code)
    code, out, _ = evopolicygym(place, "agent", "show", "invented", "--agent-option", "colour=red", path=path,
                                variables={"INVENTED_TOKEN": SECRET})
    expect_equal(code, 0, "show")
    expect(SECRET not in out and "INVENTED_TOKEN=[redacted]" in out, "show tells the secret: " + out)


def repeated(place):
    """--like takes the Agent over, adapter, options and all."""
    path = invented_binary(place, INVENTED)
    secrets = {"INVENTED_TOKEN": SECRET}
    first = run_agent(place, ["--agent-file", str(HERE / "invented-agent.json"), "--agent-option", "colour=green"], secrets,
                      path=path)
    expect_equal(first.record()["terminal_reason"], "finished", "the first Run")
    code, _, err = evopolicygym(place, "run", str(place.root / "again"), "--like", str(place.run), "--execution", "process",
                                "--allow-unsafe-process", path=path, variables=secrets)
    expect_equal(code, 0, "the second Run (%s)" % err)
    record = json.loads((place.root / "again/run.json").read_text())
    expect_equal((record["terminal_reason"], record["agent"]["provider"]), ("finished", "invented"), "the second Run")
    code, _, err = evopolicygym(place, "run", str(place.root / "other"), "--like", str(place.run), "--model", "brain-2",
                                path=path, variables=secrets)
    expect_equal((code, "--agent NAME" in err), (2, True), "a change without an Agent (%s)" % err)


def own_command(place, way, words):
    """The task reaches a user's own command as an argument, on stdin, or as a file."""
    script = place.root / "agent.sh"
    script.write_text("#!/bin/sh\n%s\nevopolicygym-session submit program --episodes 0:2 >&2\n"
                      "evopolicygym-session finish submission-000001 >&2\n" % words)
    script.chmod(0o755)
    options = ["--agent-task", way] if way != "auto" else []
    argument = ["{instructions}"] if way == "argument" else []
    result = run_agent(place, [*options, "--agent", "command", "--model", "none", "--", str(script), *argument])
    record = result.record()
    expect_equal((record["terminal_reason"], record["agent"]["model"]), ("finished", "none"), "the Run")
    out = (place.run / "agent/stdout.log").read_bytes()
    expect_equal(out, (place.run / "agent/instructions.md").read_bytes(), "what the command was told")
    command = result.json("agent/invocation.json")["command"]
    expect_equal(command[1:], ["@agent/instructions.md"] if argument else [], "recorded arguments")


def guide_is_sound(place):
    """The adapter that the guide shows can be read as it stands."""
    guide = (SOURCE / "docs/adapters.md").read_text("utf-8")
    file = place.root / "my-agent.json"
    file.write_text(guide.split("```json\n")[1].split("```")[0])
    code, out, err = evopolicygym(place, "agent", "show", "--agent-file", str(file), "--model", "m1")
    expect_equal(code, 0, "show (%s)" % err)
    expect("my-agent run --json --model m1 @agent/instructions.md" in out, out)


def unusable(place, what):
    """Told at once, in one line, and nothing is made."""
    binary = place.root / "agent"
    if what == "not executable":
        binary.write_text("#!/bin/sh\n")
    if what == "a directory":
        binary.mkdir()
    result = run_agent(place, ["--agent", "codex", "--model", "m", "--agent-executable", str(binary)])
    expect_equal(result.code, 2, "exit code")
    expect_equal(len(result.err.strip().splitlines()), 1, "lines on stderr: " + result.err)
    expect("executable" in result.err or "not found" in result.err, result.err)
    expect(not place.run.exists(), "the Run's directory was made")


def mistaken(place, arguments, told):
    result = run_agent(place, arguments)
    expect_equal(result.code, 2, "exit code (%s)" % result.err)
    expect(told in result.err, "told: " + result.err)
    expect(not place.run.exists(), "the Run's directory was made")


def prints_nothing(place):
    record = stand_in(place, "codex", {}).record()
    expect_equal(record["terminal_reason"], "agent_exited", "terminal reason")
    expect_equal(record["host"]["usage"]["tokens_known"], "unknown", "tokens")
    check_nothing_left(place)


def tells_no_version(place):
    result = stand_in(place, "codex", {"version": "", "stdout": str(STREAMS / "codex-ok.ndjson"), "commands": FINISH})
    expect_equal(result.record()["terminal_reason"], "finished", "terminal reason")
    expect("cli_version" not in result.json("agent/invocation.json")["agent"], "a version was made up")


def one_long_line(place):
    result = stand_in(place, "claude-code", {"line": ["x", 100], "stdout": str(STREAMS / "claude-ok.ndjson"),
                                             "commands": FINISH})
    record = result.record()
    expect_equal(record["terminal_reason"], "finished", "terminal reason")
    expect_equal(record["host"]["usage"]["tokens"]["input"], 2668, "tokens in")
    skipped = [line for line in result.transcript() if line["event"] == "skipped"]
    expect_equal([(line["reason"], line["bytes"]) for line in skipped], [("too_long", 100 << 20)], "skipped")
    expect((place.run / "agent/stdout.log").stat().st_size < 16 << 20, "the log is not bounded")
    expect((place.run / "agent/transcript.jsonl").stat().st_size < 1 << 20, "the transcript is not bounded")


def exits_well_with_an_error(place):
    record = stand_in(place, "claude-code", {"stdout": str(STREAMS / "claude-overload.ndjson")}).record()
    expect_equal(record["terminal_reason"], "agent_exited", "terminal reason")
    error = record["host"]["agent_error"]
    expect_equal((error["kind"], error["side"]), ("overload", "provider"), "error")
    expect_equal(record["host"]["agent_cause"], "provider", "cause")


def never_exits(place):
    result = stand_in(place, "codex", {"commands": FINISH, "wait": 600, "orphan": True}, "--agent-grace", "1")
    record = result.record()
    expect_equal(record["terminal_reason"], "finished", "terminal reason")
    expect_equal((record["host"]["agent_cause"], record["agent"]["stopped_after_terminal"]), ("finished", True), "cause")
    check_nothing_left(place)


def does_nothing(place):
    record = stand_in(place, "codex", {"wait": 600, "orphan": True}, "--agent-idle", "2").record()
    expect_equal(record["terminal_reason"], "agent_failed", "terminal reason")
    expect_equal(record["host"]["agent_cause"], "idle", "cause")
    check_nothing_left(place)


def works_quietly(place):
    """Processor time of a child is work: 6 s of it are no idleness of 2 s."""
    busy = "python3 -c 'import time\nwhile time.process_time() < 6: pass'"
    record = stand_in(place, "codex", {"commands": [busy, *FINISH]}, "--agent-idle", "2").record()
    expect_equal(record["terminal_reason"], "finished", "terminal reason")


def uses_too_much(place, option, limit, cause):
    orders = {"stdout": str(STREAMS / "opencode-ok.ndjson"), "wait": 600}
    record = stand_in(place, "opencode", orders, option, limit).record()
    expect_equal(record["terminal_reason"], "agent_failed", "terminal reason")
    expect_equal(record["host"]["agent_cause"], cause, "cause")
    check_nothing_left(place)


def starts_again(place):
    orders = {"stdout": str(STREAMS / "codex-overload.ndjson"), "exit": 1}
    record = stand_in(place, "codex", orders, "--agent-start-retries", "1").record()
    expect_equal((record["host"]["agent_starts"], record["host"]["agent_cause"]), (2, "provider"), "starts")


def does_not_start_again(place):
    """What the user has to mend is not tried again, and neither is what was spent on."""
    record = stand_in(place, "codex", {"stdout": str(STREAMS / "codex-auth.ndjson"), "exit": 1},
                      "--agent-start-retries", "3").record()
    expect_equal(record["host"]["agent_starts"], 1, "starts")


def brings_a_login_in(place):
    """The login reaches the private home, its token nothing that is kept, and the rest of the home nothing."""
    login = place.root / "login"
    (login / ".codex").mkdir(parents=True)
    (login / ".codex/auth.json").write_text(json.dumps({"tokens": {"access": SECRET}}))
    (login / ".codex/history.jsonl").write_text("private")
    commands = ["cat $CODEX_HOME/auth.json >&2; ls -A $CODEX_HOME >&2; ls -ld $HOME >&2", *FINISH]
    result = stand_in(place, "codex", {"commands": commands}, "--agent-home", str(login))
    expect_equal(result.record()["terminal_reason"], "finished", "terminal reason")
    log = (place.run / "agent/stderr.log").read_text()
    expect('{"tokens": {"access": "[redacted]"}}auth.json\ndrwx------' in log, log)
    check_nothing_left(place)
    check_no_secret(place, {"token": SECRET})
    expect(stat.S_IMODE(os.stat(login / ".codex/auth.json").st_mode) & 0o400, "the login itself was touched")


def main():
    for stream, agent, tokens, cost in [
            ("codex-ok", "codex", 2468, False), ("claude-ok", "claude-code", 2668, True), ("kimi-ok", "kimi-code", None, False),
            ("gemini-ok", "gemini-cli", 2468, False), ("qwen-ok", "qwen-code", 2468, False),
            ("opencode-ok", "opencode", 2468, True)]:
        case("recorded: " + stream, recorded, stream, agent, tokens, cost)
    for stream, agent, kind, side in [
            ("codex-auth", "codex", "login", "user"), ("codex-ratelimit", "codex", "rate_limit", "provider"),
            ("claude-overload", "claude-code", "overload", "provider"), ("kimi-auth", "kimi-code", "login", "user"),
            ("kimi-overload", "kimi-code", "overload", "provider"), ("qoder-auth", "qoder", "login", "user"),
            ("gemini-badmodel", "gemini-cli", "model", "user"), ("opencode-ratelimit", "opencode", "rate_limit", "provider")]:
        case("recorded: " + stream, recorded_failure, stream, agent, kind, side)
    case("an invented CLI takes one file", invented)
    case("an invented CLI is listed, shown and checked", invented_is_checked)
    case("a Run like another", repeated)
    case("the task as an argument", own_command, "argument", "printf %s \"$1\"")
    case("the task on stdin", own_command, "stdin", "cat")
    case("the task in a file", own_command, "file", "cat instructions.md")
    case("the task as a command finds it", own_command, "auto", "cat instructions.md")
    case("the guide's adapter is sound", guide_is_sound)
    for what in ("missing", "not executable", "a directory"):
        case("an executable that is " + what, unusable, what)
    case("no model", mistaken, ["--agent", "codex", "--agent-executable", "/bin/true"], "model")
    case("no such agent", mistaken, ["--agent", "codexx"], "codex")
    case("no agent at all", mistaken, ["--model", "x"], "--agent")
    case("an option that it does not have", mistaken, ["--agent", "codex", "--model", "m", "--agent-executable", "/bin/true",
                                                        "--agent-option", "colour=red"], "colour")
    case("a file that is no adapter", mistaken, ["--agent-file", "/dev/null"], "agent file")
    case("prints nothing", prints_nothing)
    case("tells no version", tells_no_version)
    case("prints 100 MB in one line", one_long_line)
    case("exits with 0 and an error in its stream", exits_well_with_an_error)
    case("never exits after finishing", never_exits)
    case("does nothing", does_nothing)
    case("works quietly", works_quietly)
    case("uses too many tokens", uses_too_much, "--max-tokens", "2000", "max_tokens")
    case("costs too much", uses_too_much, "--max-cost", "0.005", "max_cost")
    case("is started again after a provider's failure", starts_again)
    case("is not started again after the user's mistake", does_not_start_again)
    case("brings a login in", brings_a_login_in)
    conclude()


if __name__ == "__main__":
    sys.exit(main())
