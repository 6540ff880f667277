"""The corridor played without a Host: what a Host must come to as well. Prints the score, steps, the artifact's hash and
the digest's bytes of the environment parameters."""

import hashlib

from evopolicygym.authoring import EpisodeRecord, Transition

from evopolicygym_corridor import make_benchmark


def play(benchmark, episode, action):
    environment = benchmark.make_environment(episode)
    first = environment.reset()
    transitions = []
    while not transitions or not (transitions[-1].step.terminated or transitions[-1].step.truncated):
        transitions.append(Transition(action, environment.step(action)))
    environment.close()
    return EpisodeRecord(episode, 0, first, tuple(transitions))


benchmark = make_benchmark(length=7)
records = tuple(play(benchmark, episode, 1) for episode in benchmark.episodes("test", seed=11, count=6))
feedback = benchmark.feedback(records)
(artifact,) = feedback.artifacts
print(
    feedback.score.hex(),
    ",".join(str(len(record.transitions)) for record in records),
    hashlib.sha256(artifact.content).hexdigest(),
)
