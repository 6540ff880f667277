#!/usr/bin/env python3
"""An independent account of the built-in Benchmarks: Gymnasium 1.4's dynamics and numpy's draws, in plain Python.

    worlds.py > data/worlds.json            plays many worlds and writes what tests/vectors/worlds.c holds ours against
    worlds.py --check builtin_benchmarks.json   plays the worlds of that file, which Gymnasium itself played
    worlds.py --numpy                       compares the draws with an installed numpy's

Written from what Gymnasium and numpy publish, not from our C: it shares nothing with it. Only the standard library is
needed.

A step of a discrete world counts as the canonical bytes of its observation, then `F` and the reward's double, then the
two bools; an Episode as those of its initial observation and all its steps; a group's digest is over all its Episodes.

A continuous world is not the same to the last bit under another sine, and some are chaotic. So each Episode is played
twice, the second time with each sine and cosine one unit off: what is written of it is what both have in common.
"""

import base64
import hashlib
import json
import math
import struct
import sys

from exact import M64, Generator, Trigonometry


def float32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def clip(x, low, high):
    return min(max(x, low), high)


# --- The worlds: step(action) gives (reward, terminated); observation() what a Policy sees ---


class World:
    actions = 0  # how many; or 0, and the range
    continuous = True
    horizon = 200

    def __init__(self, seed, trig, **parameters):
        self.random, self.trig = Generator(seed), trig
        self.start(**parameters)


class CartPole(World):
    name, actions, horizon = "cartpole", 2, 500

    def start(self):
        self.x, self.speed, self.angle, self.turn = (self.random.uniform(-0.05, 0.05) for _ in range(4))

    def observation(self):
        return [float32(self.x), float32(self.speed), float32(self.angle), float32(self.turn)]

    def step(self, action):
        cosine, sine = self.trig.cos(self.angle), self.trig.sin(self.angle)
        total_mass, pole_mass_length = 0.1 + 1.0, 0.1 * 0.5
        force = 10.0 if action == 1 else -10.0
        push = (force + pole_mass_length * (self.turn * self.turn) * sine) / total_mass
        turning = (9.8 * sine - cosine * push) / (0.5 * (4.0 / 3.0 - 0.1 * (cosine * cosine) / total_mass))
        speeding = push - pole_mass_length * turning * cosine / total_mass
        self.x, self.speed = self.x + 0.02 * self.speed, self.speed + 0.02 * speeding
        self.angle, self.turn = self.angle + 0.02 * self.turn, self.turn + 0.02 * turning
        limit = 12 * 2 * math.pi / 360
        return 1.0, not (-2.4 <= self.x <= 2.4 and -limit <= self.angle <= limit)


class Acrobot(World):
    name, actions, horizon = "acrobot", 3, 500

    def start(self):
        self.state = [float32(self.random.uniform(-0.1, 0.1)) for _ in range(4)]

    def observation(self):
        first, second, turn_1, turn_2 = self.state
        seen = {
            "cos_theta_1": self.trig.cos(first),
            "sin_theta_1": self.trig.sin(first),
            "cos_theta_2": self.trig.cos(second),
            "sin_theta_2": self.trig.sin(second),
            "theta_1_angular_velocity": turn_1,
            "theta_2_angular_velocity": turn_2,
        }
        return {key: float32(value) for key, value in seen.items()}

    def slopes(self, state, torque):
        (first, second, turn_1, turn_2), (sin, cos) = state, (self.trig.sin, self.trig.cos)
        m1 = m2 = l1 = i1 = i2 = 1.0
        lc1 = lc2 = 0.5
        g = 9.8
        d1 = m1 * lc1**2 + m2 * (l1**2 + lc2**2 + 2 * l1 * lc2 * cos(second)) + i1 + i2
        d2 = m2 * (lc2**2 + l1 * lc2 * cos(second)) + i2
        phi2 = m2 * lc2 * g * cos(first + second - math.pi / 2.0)
        phi1 = (
            -m2 * l1 * lc2 * (turn_2 * turn_2) * sin(second)
            - 2 * m2 * l1 * lc2 * turn_2 * turn_1 * sin(second)
            + (m1 * lc1 + m2 * l1) * g * cos(first - math.pi / 2)
            + phi2
        )
        turning_2 = (torque + d2 / d1 * phi1 - m2 * l1 * lc2 * (turn_1 * turn_1) * sin(second) - phi2) / (
            m2 * lc2**2 + i2 - d2 * d2 / d1
        )
        return turn_1, turn_2, -(d2 * turning_2 + phi1) / d1, turning_2

    def step(self, action):
        torque, dt, y = action - 1.0, 0.2, self.state
        along = lambda slope, by: [a + by * b for a, b in zip(y, slope)]
        k1 = self.slopes(y, torque)
        k2 = self.slopes(along(k1, dt / 2.0), torque)
        k3 = self.slopes(along(k2, dt / 2.0), torque)
        k4 = self.slopes(along(k3, dt), torque)
        y = [p + dt / 6.0 * (a + 2 * b + 2 * c + d) for p, a, b, c, d in zip(y, k1, k2, k3, k4)]
        for i in (0, 1):
            while y[i] > math.pi:
                y[i] -= 2 * math.pi
            while y[i] < -math.pi:
                y[i] += 2 * math.pi
        y[2], y[3] = clip(y[2], -4 * math.pi, 4 * math.pi), clip(y[3], -9 * math.pi, 9 * math.pi)
        self.state = y
        ended = -self.trig.cos(y[0]) - self.trig.cos(y[1] + y[0]) > 1.0
        return 0.0 if ended else -1.0, ended


class MountainCar(World):
    name, actions, goal = "mountain-car", 3, 0.5

    def start(self):
        self.position, self.velocity = self.random.uniform(-0.6, -0.4), 0.0

    def observation(self):
        return {"position": float32(self.position), "velocity": float32(self.velocity)}

    def roll(self, velocity):
        self.velocity = clip(velocity, -0.07, 0.07)
        self.position = clip(self.position + self.velocity, -1.2, 0.6)
        if self.position == -1.2 and self.velocity < 0:
            self.velocity = 0.0
        return self.position >= self.goal and self.velocity >= 0.0

    def step(self, action):
        change = (action - 1) * 0.001 + self.trig.cos(3 * self.position) * -0.0025
        return -1.0, self.roll(self.velocity + change)


class MountainCarContinuous(MountainCar):
    name, actions, low, high, goal, horizon = "mountain-car-continuous", 0, -1.0, 1.0, 0.45, 999

    def step(self, action):
        ended = self.roll(self.velocity + (action * 0.0015 - 0.0025 * self.trig.cos(3 * self.position)))
        self.position, self.velocity = float32(self.position), float32(self.velocity)
        return (100.0 if ended else 0.0) - action * action * 0.1, ended


class Pendulum(World):
    name, low, high = "pendulum", -2.0, 2.0

    def start(self):
        self.angle = self.random.uniform(-math.pi, math.pi)
        self.turn = self.random.uniform(-1.0, 1.0)

    def observation(self):
        seen = {"cos_theta": self.trig.cos(self.angle), "sin_theta": self.trig.sin(self.angle)}
        seen["theta_angular_velocity"] = self.turn
        return {key: float32(value) for key, value in seen.items()}

    def step(self, action):
        wrapped = (self.angle + math.pi) % (2 * math.pi) - math.pi
        cost = wrapped * wrapped + 0.1 * (self.turn * self.turn) + 0.001 * (action * action)
        turn = self.turn + (3 * 10.0 / (2 * 1.0) * self.trig.sin(self.angle) + 3.0 / (1.0 * 1.0) * action) * 0.05
        self.turn = clip(turn, -8.0, 8.0)
        self.angle = self.angle + self.turn * 0.05
        return -cost, False


class Grid(World):
    continuous = False

    def walk(self, down, right):
        self.row = clip(self.row + down, 0, self.rows - 1)
        self.column = clip(self.column + right, 0, self.columns - 1)


class FrozenLake(Grid):
    name, actions = "frozen-lake", 4
    maps = {
        "4x4": "SFFF FHFH FFFH HFFG",
        "8x8": "SFFFFFFF FFFFFFFF FFFHFFFF FFFFFHFF FFFHFFFF FHHFFFHF FHFFHFHF FFFHFFFG",
    }
    ways = ((0, -1), (1, 0), (0, 1), (-1, 0))  # left, down, right, up

    def start(self, map="4x4", slippery=True, success_rate=1.0 / 3.0):
        self.map = self.maps[map].split()
        self.rows = self.columns = len(self.map)
        self.horizon = 100 if self.rows == 4 else 200
        side = (1.0 - success_rate) / 2.0
        self.chances = (side, success_rate, side) if slippery else (1.0,)
        self.row = self.column = self.random.categorical([1.0])

    def observation(self):
        tile = self.map[self.row][self.column]
        return {"state": self.row * self.columns + self.column, "row": self.row, "column": self.column, "tile": tile}

    def step(self, action):
        drawn = self.random.categorical(self.chances)
        self.walk(*self.ways[action if len(self.chances) == 1 else (action + drawn - 1) % 4])
        tile = self.map[self.row][self.column]
        return float(tile == "G"), tile in "GH"


class CliffWalking(Grid):
    name, actions, rows, columns = "cliff-walking", 4, 4, 12
    ways = ((-1, 0), (0, 1), (1, 0), (0, -1))  # up, right, down, left

    def start(self, slippery=False):
        self.chances = (1 / 3, 1 / 3, 1 / 3) if slippery else (1.0,)
        self.row, self.column = 3, self.random.categorical([1.0])

    def observation(self):
        tile = "safe" if self.row < 3 else {0: "start", 11: "goal"}[self.column]
        return {"state": self.row * 12 + self.column, "row": self.row, "column": self.column, "tile": tile}

    def step(self, action):
        drawn = self.random.categorical(self.chances)
        self.walk(*self.ways[action if len(self.chances) == 1 else (action + drawn - 1) % 4])
        if self.row == 3 and 1 <= self.column <= 10:
            self.column = 0
            return -100.0, False
        return -1.0, (self.row, self.column) == (3, 11)


class Taxi(Grid):
    name, actions, rows, columns = "taxi", 6, 5, 5
    map = ("|R: | : :G|", "| : | : : |", "| : : : : |", "| | : | : |", "|Y| : |B: |")
    ways = ((1, 0), (-1, 0), (0, 1), (0, -1))  # south, north, east, west
    # Where rain pushes: to the left of the way that it drives, then to its right. Gymnasium's own Episodes show it for
    # north, east and west; for south it is what the other three have in common.
    aside = ((2, 3), (3, 2), (1, 0), (0, 1))
    marks = ((0, 0), (0, 4), (4, 0), (4, 3))
    places = ("red", "green", "yellow", "blue", "in_taxi")

    def start(self, rainy=False, fickle=False, rainy_probability=0.8, fickle_probability=0.3):
        side = (1.0 - rainy_probability) / 2.0
        self.chances = (rainy_probability, side, side) if rainy else (1.0,)
        starts = [float(p < 4 and p != d) for _ in range(25) for p in range(5) for d in range(4)]
        state = self.random.categorical([chance / sum(starts) for chance in starts])
        self.destination, self.passenger = state % 4, state // 4 % 5
        self.column, self.row = state // 20 % 5, state // 100
        self.fickle = fickle and self.random.random() < fickle_probability

    def stopped(self, way):
        return way > 1 and self.map[self.row][2 * self.column + (2 if way == 2 else 0)] == "|"

    def observation(self):
        here = (self.row, self.column)
        legal = [self.row < 4, self.row > 0, not self.stopped(2), not self.stopped(3)]
        legal.append(self.passenger < 4 and self.marks[self.passenger] == here)
        legal.append(self.passenger == 4 and here in self.marks)
        return {
            "state": ((self.row * 5 + self.column) * 5 + self.passenger) * 4 + self.destination,
            "taxi_row": self.row,
            "taxi_column": self.column,
            "passenger_location": self.places[self.passenger],
            "destination": self.places[self.destination],
            "legal_actions": [action for action, is_legal in enumerate(legal) if is_legal],
        }

    def step(self, action):
        here, aboard, reward, ended = (self.row, self.column), self.passenger == 4, -1.0, False
        if action < 4:
            drawn = self.random.categorical(self.chances)
            way = action if drawn == 0 else self.aside[action][drawn - 1]
            if not self.stopped(action) and not self.stopped(way):
                self.walk(*self.ways[way])
        else:
            self.random.random()  # of the one thing that can happen
            if action == 4 and not aboard and self.marks[self.passenger] == here:
                self.passenger = 4
            elif action == 5 and aboard and here in self.marks:
                self.passenger = self.marks.index(here)
                ended = self.passenger == self.destination
                reward = 20.0 if ended else -1.0
            else:
                reward = -10.0
        if self.fickle and aboard and here != (self.row, self.column):
            self.fickle = False
            others = [place for place in range(4) if place != self.destination]
            self.destination = others[self.random.integers(3)]
        return reward, ended


class Blackjack(World):
    name, actions, continuous, horizon = "blackjack", 2, False, 32
    deck = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10, 10, 10)

    def start(self, natural=False, sab=True):
        self.natural, self.sab = natural, sab
        self.dealer = [self.card(), self.card()]
        self.player = [self.card(), self.card()]
        self.random.integers(4)  # the suit of the card that is shown
        if self.dealer[0] == 10:
            self.random.integers(3)  # jack, queen or king

    def card(self):
        return self.deck[self.random.integers(13)]

    @staticmethod
    def usable(hand):
        return 1 in hand and sum(hand) + 10 <= 21

    def total(self, hand):
        return sum(hand) + 10 * self.usable(hand)

    def score(self, hand):
        return 0 if self.total(hand) > 21 else self.total(hand)

    def observation(self):
        seen = {"player_sum": self.total(self.player), "dealer_showing": self.dealer[0]}
        return {**seen, "usable_ace": self.usable(self.player)}

    def step(self, action):
        if action == 1:
            self.player.append(self.card())
            bust = self.total(self.player) > 21
            return -1.0 if bust else 0.0, bust
        while self.total(self.dealer) < 17:
            self.dealer.append(self.card())
        ours, theirs = self.score(self.player), self.score(self.dealer)
        reward = float(ours > theirs) - float(ours < theirs)
        ours, theirs = sorted(self.player) == [1, 10], sorted(self.dealer) == [1, 10]
        if self.sab and ours and not theirs:
            reward = 1.0
        elif not self.sab and self.natural and ours and reward == 1.0:
            reward = 1.5
        return reward, True


WORLDS = {
    world.name: world
    for world in (
        CartPole, Acrobot, MountainCar, MountainCarContinuous, Pendulum, FrozenLake, CliffWalking, Taxi, Blackjack)
}


def episode_seed(name, split, seed, index):
    told = b"evopolicygym-%s/episode-seed/v1\0%s\0" % (name.encode(), split.encode())
    return int.from_bytes(hashlib.sha256(told + struct.pack(">QQ", seed, index)).digest()[:8], "big")


# --- Policies, the same as in worlds.c ---


def mixed(episode, step):
    """SplitMix64 of both."""
    z = ((episode << 32 | step) + 1) * 0x9E3779B97F4A7C15 & M64
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & M64
    z = (z ^ z >> 27) * 0x94D049BB133111EB & M64
    return z ^ z >> 31


def drawn(world, seen, episode, step):
    number = mixed(episode, step)
    if world.actions:
        return number % world.actions
    return world.low + (world.high - world.low) * (number % 2001 / 2000.0)


def first(world, seen, episode, step):
    return 0


def second(world, seen, episode, step):
    return 1


def steered(world, seen, episode, step):
    """Gets somewhere: each world's own rule."""
    name = world.name
    if name == "cartpole":
        return int(seen[2] + 0.25 * seen[3] + 0.05 * seen[1] + 0.02 * seen[0] > 0.0)
    if name == "acrobot":
        return 2 if seen["theta_2_angular_velocity"] > 0.0 else 0
    if name == "mountain-car":
        return 2 if seen["velocity"] >= 0.0 else 0
    if name == "mountain-car-continuous":
        return 0.9 if seen["velocity"] >= 0.0 else -0.8
    if name == "pendulum":
        return 1.7 if seen["theta_angular_velocity"] >= 0.0 else -1.9
    if name == "frozen-lake":
        return 1 + mixed(episode, step) % 2
    if name == "cliff-walking":
        return 0 if seen["state"] == 36 else 1 if seen["column"] < 11 else 2
    if name == "taxi":
        aboard = seen["passenger_location"] == "in_taxi"
        goal = seen["destination" if aboard else "passenger_location"]
        if (seen["taxi_row"], seen["taxi_column"]) == world.marks[world.places.index(goal)]:
            return 5 if aboard else 4
        moves = [action for action in seen["legal_actions"] if action < 4]
        return moves[mixed(episode, step) % len(moves)]
    return int(seen["player_sum"] < 17)


POLICIES = {"drawn": drawn, "steered": steered, "first": first, "second": second}


def play(world, policy, episode):
    """[(observation, reward, terminated, truncated)], the first for the reset."""
    told = [(world.observation(), 0.0, False, False)]
    for step in range(world.horizon):
        reward, terminated = world.step(policy(world, told[-1][0], episode, step))
        truncated = step + 1 == world.horizon  # also when it ends there, as Gymnasium's TimeLimit has it
        told.append((world.observation(), reward, terminated, truncated))
        if terminated:
            break
    return told


# --- What is written ---


def canonical(value):
    prefixed = lambda data: struct.pack(">Q", len(data)) + data
    if isinstance(value, bool):
        return b"B1" if value else b"B0"
    if isinstance(value, int):
        return b"I" + prefixed(b"%d" % value)
    if isinstance(value, float):
        return b"F" + struct.pack(">d", value)
    if isinstance(value, str):
        return b"S" + prefixed(value.encode())
    if isinstance(value, list):
        return b"L" + struct.pack(">Q", len(value)) + b"".join(map(canonical, value))
    items = sorted(value.items())
    return b"M" + struct.pack(">Q", len(items)) + b"".join(prefixed(k.encode()) + canonical(v) for k, v in items)


PARAMETERS = {
    "frozen-lake": ({}, {"map": "8x8"}, {"slippery": False}, {"map": "8x8", "success_rate": 0.9}, {"success_rate": 0.0},
                    {"success_rate": 1.0}, {"map": "8x8", "slippery": False}),
    "cliff-walking": ({}, {"slippery": True}),
    "taxi": ({}, {"rainy": True}, {"fickle": True}, {"rainy": True, "fickle": True},
             {"rainy": True, "rainy_probability": 0.25}, {"rainy": True, "rainy_probability": 0.0},
             {"fickle": True, "fickle_probability": 1.0}),
    "blackjack": ({}, {"natural": True}, {"natural": True, "sab": False}, {"sab": False}),
}
PLANS = (("train", 1), ("validation", M64), ("test", 20250101))


def written(parameters):
    text = lambda value: str(value).lower() if isinstance(value, bool) else str(value)
    return "?" * bool(parameters) + "&".join("%s=%s" % (name, text(value)) for name, value in parameters.items())


def numbers(observation):
    values = observation if isinstance(observation, list) else [observation[key] for key in sorted(observation)]
    return [float("%.9g" % value) for value in values]


def discrete(world, parameters, policy, split, seed, count):
    whole, steps = hashlib.sha256(), []
    for index in range(count):
        played = play(world(episode_seed(world.name, split, seed, index), None, **parameters), POLICIES[policy], index)
        for observation, reward, terminated, truncated in played:
            whole.update(canonical(observation) + canonical(reward) + canonical(terminated) + canonical(truncated))
        steps.append(len(played) - 1)
    return {"steps": steps, "sha256": whole.hexdigest()}


def agree(one, other):
    if one[2:] != other[2:] or abs(one[1] - other[1]) > 1e-9:
        return False
    return all(abs(x - y) <= 2e-7 * max(1.0, abs(x)) for x, y in zip(numbers(one[0]), numbers(other[0])))


def continuous(world, policy, split, seed, count):
    episodes = []
    for index in range(count):
        number = episode_seed(world.name, split, seed, index)
        one, other = (play(world(number, Trigonometry(off)), POLICIES[policy], index) for off in (0, 1))
        common = next((i for i, pair in enumerate(zip(one, other)) if not agree(*pair)), min(len(one), len(other)))
        told = {"common": common - 1, "return": float("%.12g" % sum(step[1] for step in one[:common]))}
        if len(one) == len(other) and one[-1][2] == other[-1][2]:
            told.update(steps=len(one) - 1, end="terminated" if one[-1][2] else "truncated")
        told["seen"] = [[i, *numbers(one[i][0])] for i in sorted({0, (common - 1) // 2, common - 1})]
        episodes.append(told)
    return {"episodes": episodes}


def all_groups():
    for name, world in WORLDS.items():
        for parameters in PARAMETERS.get(name, ({},)):
            for policy in POLICIES:
                if policy in ("first", "second") and (world.continuous or name == "taxi"):
                    continue
                plans = PLANS if not parameters and policy == "drawn" else PLANS[:1]
                for split, seed in plans:
                    count = 20 if not world.continuous else 3 if policy == "drawn" else 4
                    told = (
                        continuous(world, policy, split, seed, count)
                        if world.continuous
                        else discrete(world, parameters, policy, split, seed, count)
                    )
                    plan = {"split": split, "seed": str(seed), "count": count}
                    yield {"benchmark": name + written(parameters), "policy": policy, **plan, **told}


def write():
    groups = ",\n".join(json.dumps(group, separators=(",", ":")) for group in all_groups())
    sys.stdout.write('{"made_by":"tests/vectors/worlds.py","groups":[\n%s\n]}\n' % groups)


# --- Held against what others computed ---


def of_node(node):
    kind, *rest = node
    if kind == "int":
        return int(rest[0])
    if kind == "float":
        return struct.unpack(">d", base64.b64decode(rest[0]))[0]
    if kind == "list":
        return [of_node(item) for item in rest[0]]
    return {key: of_node(item) for key, item in rest[0]} if kind == "map" else rest[0]


def same(ours, theirs):
    if isinstance(theirs, float):
        return isinstance(ours, float) and abs(ours - theirs) <= 2e-7 * max(1.0, abs(theirs))
    if isinstance(theirs, dict):
        return ours.keys() == theirs.keys() and all(same(ours[key], theirs[key]) for key in theirs)
    if isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    return type(ours) is type(theirs) and ours == theirs


def check(path):
    theirs = {"map_name": "map", "is_slippery": "slippery", "is_rainy": "rainy", "fickle_passenger": "fickle"}
    with open(path, encoding="utf-8") as file:
        families = json.load(file)
    count = 0
    for family, entry in families.items():
        name = family.replace("_", "-")
        for told in entry["trajectories"]:
            given = {} if told["parameters"] == "default" else json.loads(told["parameters"])
            given = {theirs.get(key, key): value for key, value in given.items()}
            seed = episode_seed(name, told["split"], int(told["seed"]), told["index"])
            world = WORLDS[name](seed, Trigonometry(), **given)
            where = "%s %s %s" % (name, told["parameters"], told["split"])
            assert same(world.observation(), of_node(told["initial"])), where
            for number, step in enumerate(told["steps"]):
                reward, terminated = world.step(of_node(step["action"]))
                assert abs(reward - float.fromhex(step["reward"])) < 1e-12, (where, number)
                assert terminated == step["terminated"], (where, number)
                assert same(world.observation(), of_node(step["observation"])), (where, number)
            count += 1
    assert count > 40
    print("%d Episodes are Gymnasium's" % count)


def check_numpy():
    import numpy

    for seed in (0, 1, 2**32 - 1, 2**32, 2**64 - 1, 9071532795289577885):
        theirs = numpy.random.Generator(numpy.random.PCG64(numpy.random.SeedSequence(seed)))
        ours = Generator(seed)
        for turn in range(2000):
            assert ours.random() == theirs.random()
            assert ours.uniform(-0.6, -0.4) == theirs.uniform(-0.6, -0.4)
            for count in (13, 4, 3, 1, 3000000000):
                assert ours.integers(count) == theirs.integers(count)
    print("numpy %s draws the same" % numpy.__version__)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--check"]:
        check(sys.argv[2])
    elif sys.argv[1:] == ["--numpy"]:
        check_numpy()
    else:
        write()
