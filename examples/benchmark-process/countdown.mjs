// A Benchmark in JavaScript: count down from a secret start; take 1, 2 or 3 a turn and land on 0 exactly.
//
//     evopolicygym benchmark check 'cmd:node examples/benchmark-process/countdown.mjs'
//
// docs/benchmark-protocol.md tells the frames and the values. Questions come on descriptor 3, answers go to 4.
import fs from 'node:fs';

// --- Canonical values. Ints are BigInt, floats are Number; a Map or a plain object is a map. ---

const be64 = (number) => {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(BigInt(number));
  return bytes;
};
const counted = (data) => Buffer.concat([be64(data.length), data]);
const tag = (letter, ...parts) => Buffer.concat([Buffer.from(letter), ...parts]);

function encode(value) {
  if (value === null) return tag('N');
  if (typeof value === 'boolean') return tag(value ? 'B1' : 'B0');
  if (typeof value === 'bigint') return tag('I', counted(Buffer.from(value.toString())));
  if (typeof value === 'number') {
    const bytes = Buffer.alloc(8);
    bytes.writeDoubleBE(value);
    return tag('F', bytes);
  }
  if (typeof value === 'string') return tag('S', counted(Buffer.from(value)));
  if (Buffer.isBuffer(value)) return tag('Y', counted(value));
  if (Array.isArray(value)) return tag('L', be64(value.length), ...value.map(encode));
  const keys = Object.keys(value).sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  return tag('M', be64(keys.length), ...keys.flatMap((key) => [counted(Buffer.from(key)), encode(value[key])]));
}

function decode(data) {
  let at = 0;
  const number = () => Number(data.readBigUInt64BE((at += 8) - 8));
  const bytes = () => {
    const size = number();
    return data.subarray(at, (at += size));
  };
  const items = () => Array.from({ length: number() }, () => value());
  const value = () => {
    const letter = String.fromCharCode(data[at++]);
    switch (letter) {
      case 'N': return null;
      case 'B': return data[at++] === 0x31;
      case 'I': return BigInt(bytes().toString());
      case 'F': return data.readDoubleBE((at += 8) - 8);
      case 'S': return bytes().toString();
      case 'Y': return bytes();
      case 'L': case 'U': return items();
      case 'M': {
        const map = {};
        for (let left = number(); left > 0; left--) {
          const key = bytes().toString();
          map[key] = value();
        }
        return map;
      }
      default: throw new Error(`a ${letter} is not used by this Benchmark`);
    }
  };
  return value();
}

// --- Frames ---

let sequence = Buffer.alloc(4);

function read(size) {
  const data = Buffer.alloc(size);
  for (let at = 0; at < size; ) {
    const got = fs.readSync(3, data, at, size - at);
    if (got === 0) process.exit(0); // the Host is done with us
    at += got;
  }
  return data;
}

function hear() {
  const frame = read(read(4).readUInt32BE());
  sequence = frame.subarray(1, 5);
  return { type: String.fromCharCode(frame[0]), body: frame.length > 5 ? decode(frame.subarray(5)) : undefined };
}

function tell(type, value) {
  const body = value === undefined ? Buffer.alloc(0) : encode(value);
  const head = Buffer.alloc(5);
  head.writeUInt32BE(5 + body.length);
  head.write(type, 4);
  const frame = Buffer.concat([head, sequence, body]);
  for (let at = 0; at < frame.length; ) at += fs.writeSync(4, frame, at);
}

function ask(type, value) {
  tell(type, value);
  return hear().body;
}

// --- The Benchmark ---

const spec = {
  id: 'example/countdown',
  description: 'Take 1, 2 or 3 from the number that you see, at most ten times. Landing on 0 earns 1; going below ends it.',
  observation_space: { type: 'int' },
  action_space: { type: 'discrete', values: [1n, 2n, 3n] },
  metadata: {},
  environment_parameters: { most: 3n },
  max_episode_steps: 10n,
  primary_metric: 'success_rate',
  score_direction: 'maximize',
};

let left = 0n;
let turns = 0;

function step(action) {
  if (typeof action !== 'bigint' || action < 1n || action > 3n) return tell('i', 'the Action must be 1, 2 or 3');
  left -= action;
  turns += 1;
  const terminated = left <= 0n;
  tell('a', {
    metrics: null, observation: left, reward: left === 0n ? 1.0 : 0.0, terminated,
    truncated: !terminated && turns === 10,
  });
}

function feedback() {
  let wins = 0;
  let count = 0;
  const lines = [];
  for (let record; (record = ask('n')) !== null; count++) {
    const actions = [];
    for (let steps; (steps = ask('t', 100n)).length > 0; ) actions.push(...steps.map((turn) => Number(turn.action)));
    wins += record.reward ?? 0;
    lines.push(JSON.stringify({ actions, failure: record.policy_failure }) + '\n');
  }
  tell('m', {
    name: 'actions.jsonl', media_type: 'application/x-ndjson', retention: 'bulk', content: Buffer.from(lines.join('')),
  });
  tell('f', { score: count === 0 ? 0 : wins / count, content: { wins: BigInt(wins) } });
}

const answers = {
  S: () => tell('s', spec),
  E: ({ count, seed }) => {
    const specs = [];
    for (let i = 0n; i < count; i++) {
      const environment_seed = BigInt.asUintN(64, (seed + 1n) * 6364136223846793005n + i * 1442695040888963407n);
      specs.push({ environment_seed, scenario: null });
    }
    tell('e', specs);
    tell('d');
  },
  O: ({ environment_seed }) => {
    left = 5n + ((environment_seed >> 32n) % 16n);
    turns = 0;
    tell('o');
  },
  R: () => tell('r', left),
  A: step,
  C: () => tell('c'),
  F: feedback,
};

for (;;) {
  const { type, body } = hear();
  try {
    if (!(type in answers)) throw new Error(`no answer to ${type}`);
    answers[type](body);
  } catch (error) {
    tell('x', String(error));
  }
}
