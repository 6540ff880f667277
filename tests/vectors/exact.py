"""What worlds.py computes with: numpy's draws, and sine and cosine that are rounded rightly (from 200 bits), so that they
are the same on every machine. Written from what numpy publishes; only the standard library is needed.
"""

import math

# --- numpy's PCG64 behind its SeedSequence ---

M32, M64, M128 = (1 << 32) - 1, (1 << 64) - 1, (1 << 128) - 1


def seed_sequence(entropy, words):
    """`words` 32-bit words of numpy.random.SeedSequence(entropy)."""
    given = []
    while entropy or not given:
        given.append(entropy & M32)
        entropy >>= 32
    constant = 0x43B0D7E5

    def hashed(value, multiplier=0x931E8875):
        nonlocal constant
        value ^= constant
        constant = constant * multiplier & M32
        value = value * constant & M32
        return value ^ value >> 16

    pool = [hashed(given[i] if i < len(given) else 0) for i in range(4)]
    for source in range(4):
        for target in range(4):
            if source != target:
                mixed = (0xCA01F9DD * pool[target] - 0x4973F715 * hashed(pool[source])) & M32
                pool[target] = mixed ^ mixed >> 16
    constant = 0x8B51F9DD
    return [hashed(pool[i % 4], 0x58F38DED) for i in range(words)]


class Generator:
    def __init__(self, seed):
        words = seed_sequence(seed, 8)
        state_high, state_low, stream_high, stream_low = (words[i] | words[i + 1] << 32 for i in (0, 2, 4, 6))
        self.increment = ((stream_high << 64 | stream_low) << 1 | 1) & M128
        self.state = 0
        self.step()
        self.state = (self.state + (state_high << 64 | state_low)) & M128
        self.step()
        self.half = None

    def step(self):
        self.state = (self.state * 0x2360ED051FC65DA44385DF649FCCF645 + self.increment) & M128

    def bits(self):
        self.step()
        turn, value = self.state >> 122, (self.state >> 64 ^ self.state) & M64
        return (value >> turn | value << (64 - turn)) & M64

    def random(self):
        return (self.bits() >> 11) * 2.0**-53

    def uniform(self, low, high):
        return low + (high - low) * self.random()

    def half_bits(self):
        if self.half is not None:
            half, self.half = self.half, None
            return half
        value = self.bits()
        self.half = value >> 32
        return value & M32

    def integers(self, count):
        """integers(0, count), and the index that choice() draws."""
        if count == 1:
            return 0
        product = self.half_bits() * count
        while product & M32 < (1 << 32) % count:
            product = self.half_bits() * count
        return product >> 32

    def categorical(self, probabilities):
        """Gymnasium's categorical_sample: argmax(cumsum(probabilities) > random())."""
        drawn, total = self.random(), 0.0
        for index, probability in enumerate(probabilities):
            total += probability
            if total > drawn:
                return index
        return 0


# --- Sine and cosine ---

BITS = 200


def arctan_of_inverse(number):
    term = total = (1 << BITS + 20) // number
    k = 1
    while term:
        term //= number * number
        k += 2
        total += -(term // k) if k & 2 else term // k
    return total


QUARTER_TURN = (4 * arctan_of_inverse(5) - arctan_of_inverse(239)) * 2 >> 20  # pi/2


class Trigonometry:
    """`off`: each result is that many units in the last place away, upwards and downwards in turn."""

    def __init__(self, off=0):
        self.off = off

    def turned(self, x):
        numerator, denominator = x.as_integer_ratio()
        angle = (numerator << BITS) // denominator
        turns = (2 * angle + QUARTER_TURN) // (2 * QUARTER_TURN)
        return angle - turns * QUARTER_TURN, turns % 4

    def series(self, angle, term, k):
        total, square = term, angle * angle >> BITS
        while term:
            term = -(term * square >> BITS) // ((k + 1) * (k + 2))
            k += 2
            total += term
            if -2 < term < 2:
                break
        return total

    def rounded(self, value):
        result = value / (1 << BITS)
        self.off = -self.off
        return math.nextafter(result, math.copysign(math.inf, self.off)) if self.off else result

    def sin(self, x):
        angle, quadrant = self.turned(x)
        value = self.series(angle, angle, 1) if quadrant % 2 == 0 else self.series(angle, 1 << BITS, 0)
        return self.rounded(-value if quadrant > 1 else value)

    def cos(self, x):
        angle, quadrant = self.turned(x)
        value = self.series(angle, 1 << BITS, 0) if quadrant % 2 == 0 else self.series(angle, angle, 1)
        return self.rounded(-value if quadrant in (1, 2) else value)
