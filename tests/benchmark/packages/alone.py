"""Plays a package without any Host, as a Host must come to as well.

    alone.py MODULE FACTORY JSON-PARAMETERS PROGRAM SPLIT RUN-SEED COUNT

Plans the training pool of a Run with that seed and plays each of its Episodes once with the Program's Policy, in this
process. Prints JSON: the score, steps, failures, hashes of the artifacts and the digest of the environment parameters.
"""

import hashlib
import importlib
import json
import struct
import sys

from evopolicygym.authoring import EpisodeRecord, InvalidAction, Transition
from evopolicygym.policy import PolicyContext


def be64(number):
    return number.to_bytes(8, "big")


def derived(domain, *numbers):
    data = domain.encode() + b"\0" + b"".join(map(be64, numbers))
    return int.from_bytes(hashlib.sha256(data).digest()[:8], "big")


def digest_form(value):
    """The environment digest's own form of a value, for what these packages have in their parameters."""
    prefixed = lambda data: be64(len(data)) + data
    if isinstance(value, bool):
        return b"B1" if value else b"B0"
    if isinstance(value, int):
        return b"I" + prefixed(str(value).encode())
    if isinstance(value, float):
        return b"F" + struct.pack(">d", value)
    if isinstance(value, str):
        return b"S" + prefixed(value.encode())
    items = sorted(value.items(), key=lambda item: item[0].encode())
    return b"M" + be64(len(items)) + b"".join(prefixed(key.encode()) + digest_form(item) for key, item in items)


def play(benchmark, episode, make_policy, seed):
    spec = benchmark.spec
    environment = benchmark.make_environment(episode)
    first = seen = environment.reset()
    transitions, failure = [], None
    try:
        policy = make_policy(PolicyContext(
            spec.observation_space, spec.action_space, spec.metadata, spec.environment_parameters, seed))
        for _ in range(spec.max_episode_steps):
            action = policy.act(seen)
            try:
                step = environment.step(action)
            except InvalidAction as refused:
                step = refused
            if isinstance(step, InvalidAction):
                failure = "invalid_action"
                break
            transitions.append(Transition(action, step))
            seen = step.observation
            if step.terminated or step.truncated:
                break
    except ArithmeticError:
        failure = "exception"
    environment.close()
    return EpisodeRecord(episode, seed, first, tuple(transitions), failure)


def main(module, factory, parameters, program, split, run_seed, count):
    run_seed, count = int(run_seed), int(count)
    benchmark = getattr(importlib.import_module(module), factory)(**json.loads(parameters))
    sys.path.insert(0, program)
    make_policy = importlib.import_module("policy").make_policy
    plan = benchmark.episodes(split, seed=derived("evopolicygym/training-pool/v1", run_seed), count=count)
    records = tuple(
        play(benchmark, episode, make_policy, derived("evopolicygym/training-policy/v1", run_seed, index))
        for index, episode in enumerate(plan)
    )
    feedback = benchmark.feedback(records)
    parameters = digest_form(dict(benchmark.spec.environment_parameters))
    print(json.dumps({
        "score": feedback.score,
        "steps": [len(record.transitions) for record in records],
        "failures": [record.policy_failure for record in records],
        "artifacts": {file.name: hashlib.sha256(file.content).hexdigest() for file in feedback.artifacts},
        "digest": "sha256:" + hashlib.sha256(b"evopolicygym/environment-parameters/v1\0" + parameters).hexdigest(),
    }, sort_keys=True))


if __name__ == "__main__":
    main(*sys.argv[1:])
