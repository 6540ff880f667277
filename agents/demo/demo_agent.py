#!/usr/bin/env python3
"""The demo agent: it improves a Policy Program by trial and Feedback. No model, no network, no knowledge of the task.

    demo_agent.py [SEED]        started by `evopolicygym run ... -- python3 agents/demo/demo_agent.py`

It plays any Benchmark that shows a vector of numbers and takes the Actions 0 and 1. Its Programs all decide alike:
weigh the numbers, add them up, and answer 1 when the sum is above zero. What it looks for is the weights:

1. measure the Program that it was given, to know where it starts;
2. guess weights at random until some guess does clearly better than that;
3. from then on, guess near the average of the best guesses so far;
4. give a guess that did as well as the best one a second Episode, so that luck does not win;
5. learn from the Feedback how large each number gets, and guess in that scale: 0.2 rad is far for a pole, 0.2 m is
   near for a cart;
6. when the Episodes are spent, hand over the best guesses. The Host chooses among them on Episodes of its own.
"""

import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path

WORKSPACE = Path(os.environ.get("EVOPOLICYGYM_WORKSPACE", "."))
PARENTS = 3  # how many of the best guesses the next one is made from
STEP = 0.9  # how far it strays from their average in each number; a guess has length 1
CLEARLY_BETTER = 5  # times the score of the given Program: from here on a guess is worth going on from

POLICY = '''\
from evopolicygym.policy import Policy

WEIGHTS = {weights}


class Linear(Policy):
    def act(self, observation):
        return 1 if sum(w * x for w, x in zip(WEIGHTS, observation)) > 0 else 0


def make_policy(context):
    return Linear()
'''


def read_task():
    """The facts of this Run, from the instructions that the Host wrote for its agent."""
    text = (WORKSPACE / "instructions.md").read_text(encoding="utf-8")

    def number(pattern, default=1):
        found = re.search(pattern, text)
        return int(found.group(1)) if found else default

    spec = json.loads(re.search(r"```json\n(.*?)```", text, re.DOTALL).group(1))
    if spec["observation_space"].get("type") != "vector" or spec["action_space"].get("values") != [0, 1]:
        sys.exit("The demo agent only plays Benchmarks with a vector to see and the Actions 0 and 1.")
    return {
        "budget": number(r"Episodes in all: (\d+)"),
        "pool": number(r"Training pool: (\d+)"),
        "submissions": number(r"Submissions: at most (\d+)"),
        "candidates": number(r"takes at most (\d+)\s+submission ids"),
        "inputs": spec["observation_space"]["shape"][0],
        "sign": 1 if spec["score_direction"] == "maximize" else -1,
    }


def session(*words):
    """One command of the session, and its answer."""
    done = subprocess.run(["evopolicygym-session", *words], cwd=WORKSPACE, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"The session refused {' '.join(words)}.")
    return json.loads(done.stdout)["result"]


class Guess:
    """Weights, and what the Feedback on them says. No weights: the Program that stood there at the start."""

    def __init__(self, weights):
        self.weights = weights
        self.scores = []
        self.submission = None

    def worth(self):
        """The mean score, held a little low while it rests on few Episodes."""
        return sum(self.scores) / (len(self.scores) + 0.2)


class Search:
    def __init__(self, task, seed):
        self.task = task
        self.random = random.Random(seed)
        self.reach = [0.001] * task["inputs"]  # the largest size of each number in any Episode's last observation
        self.used = 0
        self.submitted = 0
        self.guesses = []

    def may_submit(self):
        return self.used < self.task["budget"] and self.submitted < self.task["submissions"]

    def measure(self, guess):
        """Submits the guess on one Episode, the next of the pool, and reads the Feedback."""
        if guess.weights:
            (WORKSPACE / "program" / "policy.py").write_text(POLICY.format(weights=guess.weights), encoding="utf-8")
        episode = self.used % self.task["pool"]
        answer = session("submit", "program", "--episodes", str(episode))
        feedback = json.loads((WORKSPACE / answer["feedback"]).read_text(encoding="utf-8"))
        self.used, self.submitted = self.used + 1, self.submitted + 1
        self.learn(guess, answer["submission_id"], feedback)
        print(f"{guess.submission}: score {feedback['score']:g} on Episode {episode}", flush=True)

    def learn(self, guess, submission, feedback):
        guess.submission = submission
        guess.scores.append(self.task["sign"] * feedback["score"])
        for episode in feedback["content"]["episodes"]:
            last = episode.get("final_observation") or []
            self.reach = [max(reach, abs(x)) for reach, x in zip(self.reach, last)] or self.reach

    def best(self, count):
        return sorted(self.guesses, key=Guess.worth, reverse=True)[:count]

    def next_weights(self, good_enough):
        """Weights near the average of the best guesses, or anywhere when none was good yet. Each number is taken in
        units of its reach here, so that a step means as much for each of them."""
        parents = [guess.weights for guess in self.best(PARENTS) if guess.weights and guess.worth() >= good_enough]
        point = [self.random.gauss(0, 1) for _ in self.reach]
        if parents:
            average = [sum(column) / len(parents) for column in zip(*parents)]
            point = [w * reach + STEP * x for w, reach, x in zip(average, self.reach, point)]
        length = sum(x * x for x in point) ** 0.5
        return [round(x / length / reach, 4) for x, reach in zip(point, self.reach)]

    def run(self):
        start = Guess(None)
        self.measure(start)
        self.guesses.append(start)
        good_enough = start.worth() + (CLEARLY_BETTER - 1) * abs(start.worth())
        while self.may_submit():
            record = self.best(1)[0].worth()
            guess = Guess(self.next_weights(good_enough))
            self.measure(guess)
            if guess.scores[0] >= record and self.may_submit():
                self.measure(guess)
            self.guesses.append(guess)
        return self.best(self.task["candidates"])


def main():
    search = Search(read_task(), seed=int(sys.argv[1]) if len(sys.argv) > 1 else 0)
    finalists = search.run()
    for guess in finalists:
        print(f"candidate {guess.submission}: mean score {sum(guess.scores) / len(guess.scores):g}")
    session("finish", *[guess.submission for guess in finalists])


if __name__ == "__main__":
    main()
