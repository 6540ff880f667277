"use strict";
/* Episodes as pictures: each built-in Benchmark's own, and the numbers of the observation over time for any other. */
const worlds = (function () {
  const { colour } = kit;
  const ACTIONS = {
    CartPole: ["push left", "push right"], Acrobot: ["torque -1", "no torque", "torque +1"], "MountainCar-v0": ["accelerate left", "coast", "accelerate right"],
    FrozenLake: ["left", "down", "right", "up"], CliffWalking: ["up", "right", "down", "left"], Taxi: ["south", "north", "east", "west", "pick up", "drop off"], Blackjack: ["stick", "hit"],
  };
  function actionText(id, action) {
    const names = Object.entries(ACTIONS).find(([part]) => id.includes(part));
    const text = JSON.stringify(action);
    return names && names[1][action] !== undefined ? text + " (" + names[1][action] + ")" : text;
  }
  function frames(episode, fields) {
    const named = (o) => (fields && Array.isArray(o) ? Object.fromEntries(fields.map((name, i) => [name, o[i]])) : o);
    const out = episode.steps.map(([step, action, reward, observation]) => ({ step, action, reward, observation: named(observation) }));
    if (episode.end && episode.end.observation !== undefined) out.push({ step: episode.end.steps, end: episode.end.end, observation: named(episode.end.observation) });
    return out;
  }
  function paint(c, w, h, one, list, at) {
    const id = one.run.benchmark.id, o = list[at].observation, ink = colour("ink"), accent = colour("accent"), faint = colour("faint"), best = colour("best"), bad = colour("bad"), held = colour("held");
    c.clearRect(0, 0, w, h);
    c.lineCap = "round"; c.lineJoin = "round"; c.font = "13px system-ui, sans-serif"; c.textAlign = "left"; c.textBaseline = "alphabetic";
    const line = (x1, y1, x2, y2, style, width) => { c.strokeStyle = style; c.lineWidth = width; c.beginPath(); c.moveTo(x1, y1); c.lineTo(x2, y2); c.stroke(); };
    const dot = (x, y, r, style) => { c.fillStyle = style; c.beginPath(); c.arc(x, y, r, 0, 7); c.fill(); };
    const write = (text, x, y, style, font, align) => { c.fillStyle = style; c.font = font || "13px system-ui, sans-serif"; c.textAlign = align || "center"; c.fillText(text, x, y); };
    /* What the Policy does next: a straight arrow, or one around a joint (`turn` > 0 is counter-clockwise). */
    const arrow = (x, y, dx, dy) => {
      const long = Math.hypot(dx, dy), head = Math.min(8, long / 2), ux = dx / long, uy = dy / long, tx = x + dx, ty = y + dy;
      line(x, y, tx, ty, held, 3);
      line(tx, ty, tx - head * (ux + uy), ty - head * (uy - ux), held, 3);
      line(tx, ty, tx - head * (ux - uy), ty - head * (uy + ux), held, 3);
    };
    const turnArrow = (x, y, r, turn) => {
      const reach = Math.min(1, Math.abs(turn)) * 2.2, way = turn > 0 ? -1 : 1, from = -Math.PI / 2 - (way * reach) / 2, to = from + way * reach;
      c.strokeStyle = held; c.lineWidth = 3; c.beginPath(); c.arc(x, y, r, from, to, way < 0); c.stroke();
      const tx = x + Math.cos(to) * r, ty = y + Math.sin(to) * r, along = to + (way * Math.PI) / 2;
      for (const side of [2.5, -2.5]) line(tx, ty, tx + Math.cos(along + side) * 8, ty + Math.sin(along + side) * 8, held, 3);
    };
    const action = list[at].action, over = list[at].end;
    const known = o !== null && typeof o === "object";
    if (known && id.includes("CartPole") && Array.isArray(o) && o.length === 4) return cartpole();
    if (known && id.includes("MountainCar") && isFinite(o.position)) return mountainCar();
    if (known && id.includes("Pendulum") && isFinite(o.cos_theta)) return pendulum();
    if (known && id.includes("Acrobot") && isFinite(o.cos_theta_1)) return acrobot();
    if (known && id.includes("Taxi") && isFinite(o.taxi_row) && maze()) return taxi();
    if (known && isFinite(o.row) && isFinite(o.column) && maze()) return grid();
    if (known && id.includes("Blackjack") && isFinite(o.player_sum)) return blackjack();
    return lines();

    function maze() { const map = one.parameters && one.parameters.map; return Array.isArray(map) && map.length > 0 && map.every((r) => typeof r === "string") ? map : null; }
    function cartpole() {
      const scale = w / 6, ground = h * 0.74, x = w / 2 + o[0] * scale, angle = o[2], long = h * 0.5, half = Math.max(18, w / 24);
      line(w / 2 - 2.4 * scale, ground + half / 2, w / 2 + 2.4 * scale, ground + half / 2, faint, 2);
      for (const end of [-2.4, 2.4]) line(w / 2 + end * scale, ground - 4, w / 2 + end * scale, ground + half / 2 + 8, bad, 2);
      if (action === 0 || action === 1) arrow(x + (action ? 1 : -1) * (half + 6), ground, (action ? 1 : -1) * half, 0);
      c.fillStyle = ink; c.fillRect(x - half, ground - half / 2, 2 * half, half);
      line(x, ground - half / 3, x + Math.sin(angle) * long, ground - half / 3 - Math.cos(angle) * long, accent, 8);
      dot(x, ground - half / 3, 5, colour("card"));
    }
    function mountainCar() {
      const goal = id.includes("Continuous") ? 0.45 : 0.5, px = (v) => 20 + ((v + 1.2) / 1.8) * (w - 40), py = (v) => h - 24 - (Math.sin(3 * v) * 0.45 + 0.55) * (h - 84);
      c.strokeStyle = faint; c.lineWidth = 3; c.beginPath();
      for (let v = -1.2; v <= 0.6001; v += 0.02) c.lineTo(px(v), py(v));
      c.stroke();
      line(px(goal), py(goal), px(goal), py(goal) - 34, best, 3);
      c.fillStyle = best; c.beginPath(); c.moveTo(px(goal), py(goal) - 34); c.lineTo(px(goal) + 18, py(goal) - 28); c.lineTo(px(goal), py(goal) - 21); c.fill();
      /* The car stands on its wheels, along the slope. */
      const slope = Math.atan2(py(o.position + 0.01) - py(o.position - 0.01), px(o.position + 0.01) - px(o.position - 0.01)), size = Math.max(0.7, w / 704);
      c.save(); c.translate(px(o.position), py(o.position)); c.rotate(slope); c.scale(size, size);
      c.fillStyle = accent; c.beginPath(); c.moveTo(-19, -8); c.lineTo(-19, -16); c.lineTo(-10, -17); c.lineTo(-6, -25); c.lineTo(8, -25); c.lineTo(13, -17); c.lineTo(19, -15); c.lineTo(19, -8); c.fill();
      dot(-11, -6, 5.5, ink); dot(11, -6, 5.5, ink);
      const force = id.includes("Continuous") ? Number(Array.isArray(action) ? action[0] : action) : action === undefined ? 0 : action - 1;
      if (force) arrow(Math.sign(force) * 24, -14, Math.sign(force) * (10 + 20 * Math.min(1, Math.abs(force))), 0);
      c.restore();
    }
    function pendulum() {
      const long = h * 0.42, x = w / 2, y = h / 2, torque = Number(Array.isArray(action) ? action[0] : action);
      c.strokeStyle = faint; c.lineWidth = 1; c.globalAlpha = 0.5; c.beginPath(); c.arc(x, y, long, 0, 7); c.stroke(); c.globalAlpha = 1;
      line(x, y - long - 6, x, y - long + 6, best, 4);
      line(x, y, x - o.sin_theta * long, y - o.cos_theta * long, accent, 12);
      dot(x, y, 6, ink);
      if (torque) turnArrow(x, y, h * 0.14, torque / 2);
    }
    function acrobot() {
      const long = h / 4.5, x = w / 2, y = h / 2 + 4, a = Math.atan2(o.sin_theta_1, o.cos_theta_1), b = a + Math.atan2(o.sin_theta_2, o.cos_theta_2);
      const x1 = x + Math.sin(a) * long, y1 = y + Math.cos(a) * long;
      line(w * 0.15, y - long, w * 0.85, y - long, best, 2);
      write("goal: the tip above this line", w * 0.15, y - long - 8, best, null, "left");
      line(x, y, x1, y1, accent, 9);
      line(x1, y1, x1 + Math.sin(b) * long, y1 + Math.cos(b) * long, accent, 9);
      dot(x, y, 6, ink); dot(x1, y1, 6, ink);
      if (action === 0 || action === 2) turnArrow(x1, y1, 22, action - 1);
    }
    function board(rows, columns) {
      const size = Math.min((w - 20) / columns, (h - 20) / rows), left = (w - size * columns) / 2, top = (h - size * rows) / 2;
      return { size, left, top, x: (column) => left + (column + 0.5) * size, y: (row) => top + (row + 0.5) * size };
    }
    function grid() {
      const map = maze(), b = board(map.length, map[0].length), small = b.size < 44;
      const frozen = id.includes("FrozenLake"), names = frozen ? { S: "start", G: "goal", H: "hole" } : { S: "start", G: "goal" };
      map.forEach((row, r) => [...row].forEach((tile, k) => {
        c.fillStyle = { H: bad, C: bad, G: best, S: faint }[tile] || colour("empty");
        c.globalAlpha = "HCGS".includes(tile) ? 0.5 : 1;
        c.fillRect(b.left + k * b.size + 1, b.top + r * b.size + 1, b.size - 2, b.size - 2);
        c.globalAlpha = 1;
        if (names[tile]) write(small ? tile : names[tile], b.x(k), b.top + r * b.size + (small ? b.size * 0.4 : 15), ink, small ? "600 11px system-ui, sans-serif" : "12px system-ui, sans-serif");
      }));
      for (let i = Math.max(0, at - 12); i < at; i++) {
        const p = list[i].observation;
        if (p && isFinite(p.row)) { c.globalAlpha = 0.12 + (0.4 * (i - at + 12)) / 12; dot(b.x(p.column), b.y(p.row), b.size * 0.12, accent); c.globalAlpha = 1; }
      }
      const x = b.x(o.column), y = b.y(o.row), ways = frozen ? [[-1, 0], [0, 1], [1, 0], [0, -1]] : [[0, -1], [1, 0], [0, 1], [-1, 0]];
      dot(x, y, b.size * 0.26, accent);
      if (ways[action]) arrow(x + ways[action][0] * b.size * 0.3, y + ways[action][1] * b.size * 0.3, ways[action][0] * b.size * 0.3, ways[action][1] * b.size * 0.3);
    }
    function taxi() {
      const map = maze(), rows = map.length - 2, columns = (map[0].length - 1) / 2, b = board(rows, columns), marks = one.parameters.landmarks || {};
      const tints = { red: "#d04545", green: "#2f9e5b", blue: "#3f74e0", yellow: "#d9a514" }, small = b.size < 44;
      for (let r = 0; r < rows; r++) for (let k = 0; k < columns; k++) { c.fillStyle = colour("empty"); c.fillRect(b.left + k * b.size, b.top + r * b.size, b.size - 1, b.size - 1); }
      for (const [name, spot] of Object.entries(marks)) {
        if (!Array.isArray(spot)) continue;
        const x = b.left + spot[1] * b.size, y = b.top + spot[0] * b.size;
        c.globalAlpha = 0.45; c.fillStyle = tints[name] || faint; c.fillRect(x, y, b.size - 1, b.size - 1); c.globalAlpha = 1;
        write(small ? name[0].toUpperCase() : name, x + b.size / 2, y + (small ? 11 : 15), ink, (small ? "11px" : "12px") + " system-ui, sans-serif");
        if (name === o.destination) {
          c.strokeStyle = best; c.lineWidth = 4; c.strokeRect(x + 3, y + 3, b.size - 7, b.size - 7);
          if (!small) write("goal", x + b.size / 2, y + b.size - 9, ink, "600 12px system-ui, sans-serif");
        }
      }
      for (let r = 0; r < rows; r++) for (let k = 0; k + 1 < columns; k++) {
        const x = b.left + (k + 1) * b.size;
        if (map[r + 1][2 * k + 2] === "|") line(x, b.top + r * b.size, x, b.top + (r + 1) * b.size, ink, 4);
      }
      c.strokeStyle = ink; c.lineWidth = 4; c.strokeRect(b.left - 2, b.top - 2, columns * b.size + 3, rows * b.size + 3);
      const x = b.x(o.taxi_column), y = b.y(o.taxi_row), s = b.size, rides = o.passenger_location === "in_taxi";
      const person = (px, py) => { dot(px, py - s * 0.1, s * 0.075, held); c.fillStyle = held; c.beginPath(); c.arc(px, py + s * 0.12, s * 0.12, Math.PI, 0); c.fill(); };
      const at_spot = marks[o.passenger_location];
      if (Array.isArray(at_spot)) person(b.x(at_spot[1]) - s * 0.28, b.y(at_spot[0]) + s * 0.1);
      c.fillStyle = ink; c.fillRect(x - s * 0.3, y - s * 0.08, s * 0.6, s * 0.24); c.fillRect(x - s * 0.17, y - s * 0.2, s * 0.34, s * 0.14);
      dot(x - s * 0.17, y + s * 0.18, s * 0.075, faint); dot(x + s * 0.17, y + s * 0.18, s * 0.075, faint);
      if (rides) { dot(x, y + s * 0.04, s * 0.1, held); }
      const way = [[0, 1], [0, -1], [1, 0], [-1, 0]][action];
      if (way) arrow(x + way[0] * s * 0.36, y + way[1] * s * 0.3, way[0] * s * 0.26, way[1] * s * 0.26);
    }
    function blackjack() {
      const tall = h * 0.5, wide = tall * 0.7, top = h * 0.22;
      const card = (x, text, label, style) => {
        write(label, x, top - 12, faint);
        c.fillStyle = colour("card"); c.strokeStyle = faint; c.lineWidth = 2; c.beginPath(); c.rect(x - wide / 2, top, wide, tall); c.fill(); c.stroke();
        write(text, x, top + tall * 0.5 + h * 0.08, style, "600 " + Math.round(h * 0.24) + "px system-ui, sans-serif");
      };
      card(w * 0.3, o.player_sum, "you" + (o.usable_ace ? ", with an ace as 11" : ""), o.player_sum > 21 ? bad : accent);
      card(w * 0.7, o.dealer_showing === 1 ? "A" : o.dealer_showing, "dealer shows", ink);
      if (over) write(String(over).replace(/_/g, " "), w / 2, h - 14, /won|natural/.test(over) ? best : /lost|bust/.test(over) ? bad : ink, "600 16px system-ui, sans-serif");
      else if (action !== undefined) write(action === 1 ? "hits" : "sticks", w * 0.3, h - 14, held, "600 16px system-ui, sans-serif");
    }
    /* Any other Benchmark: the numbers of the observation over time. */
    function lines() {
      const flat = (v) => (typeof v === "number" ? [v] : Array.isArray(v) ? v.flatMap(flat) : v && typeof v === "object" ? Object.values(v).flatMap(flat) : []);
      const all = list.map((f) => flat(f.observation).slice(0, 6)), values = all.flat();
      const low = Math.min(...values), high = Math.max(...values);
      const x = (i) => 12 + (i / Math.max(1, list.length - 1)) * (w - 24), y = (v) => h - 14 - ((v - low) / (high - low || 1)) * (h - 28);
      const shades = [accent, held, best, bad, colour("warn"), faint];
      for (let k = 0; k < (all[at] || []).length; k++) {
        c.strokeStyle = shades[k]; c.lineWidth = 1.5; c.beginPath();
        all.forEach((v, i) => { if (v[k] !== undefined) c.lineTo(x(i), y(v[k])); });
        c.stroke();
      }
      line(x(at), 6, x(at), h - 6, ink, 1);
    }
  }
  return { actionText, frames, paint };
})();
