"use strict";
/* A strip of Episodes: a row a submission, a column an Episode index, so that the same Episode stands under itself. */
const strip = (function () {
  const { el, colour, number, plural } = kit;
  const WIDEST = 12000, GUTTER = 44, HEADER = 22;

  /* `rows`: { label, title, episodes: { indices, rewards, steps, failures } }; `chosen()`: the row that is shown below, or
   * -1; `choose(row)`. Gives the nodes, what draws them, and the range of rewards as text ("" without Episodes). */
  function make({ rows, what, hint, chosen, choose }) {
    const columns = [...new Set(rows.flatMap((r) => r.episodes.indices))].sort((a, b) => a - b);
    const placeOf = new Map(columns.map((index, i) => [index, i]));
    const failures = rows.map((r) => new Map(r.episodes.failures));
    const rewards = rows.flatMap((r, row) => r.episodes.rewards.filter((value, i) => !failures[row].has(i)));
    const low = rewards.reduce((a, b) => Math.min(a, b), Infinity), high = rewards.reduce((a, b) => Math.max(a, b), -Infinity);
    const readout = el("p", { class: "small", "aria-live": "polite" }, hint);
    const canvas = el("canvas", { tabindex: 0, role: "img", "aria-label": what + ": " + plural(rows.length, "row") + ", " + plural(columns.length, "column") + " of Episode indices. Arrow keys read cells out." });
    const holder = el("div", { class: "scroll strip tall" }, canvas);
    const cursor = { row: Math.max(0, chosen()), column: 0 };
    let wide = 4, tall = 8;

    function layout() {
      const room = Math.max(240, holder.clientWidth || 700) - GUTTER - 4;
      wide = Math.max(3, Math.min(26, Math.floor(room / Math.max(1, columns.length))));
      tall = rows.length <= 30 ? 18 : rows.length <= 80 ? 12 : 7;
    }
    function cell(c, x, y, strength, failure, paper) {
      const gap = wide > 5 ? 1 : 0, rowGap = tall > 8 ? 2 : 1, w = wide - gap, h = tall - rowGap;
      c.globalAlpha = 1;
      c.fillStyle = paper.card;
      c.fillRect(x, y, w, h);
      const open = failure === "unfinished"; /* nobody's fault: the Host was cut off */
      c.globalAlpha = open ? 0.35 : failure ? 1 : strength;
      c.fillStyle = open ? paper.faint : failure ? paper.bad : paper.accent;
      c.fillRect(x, y, w, h);
      c.globalAlpha = 1;
      if (!failure || open || wide < 7) return;
      c.strokeStyle = paper.card; c.lineWidth = 1.5;
      c.beginPath(); c.moveTo(x + 2, y + 2); c.lineTo(x + w - 2, y + h - 2); c.moveTo(x + w - 2, y + 2); c.lineTo(x + 2, y + h - 2); c.stroke();
    }
    function labels(c, shown, mine, paper) {
      const everyRow = Math.ceil(14 / tall), everyColumn = Math.ceil(34 / wide);
      c.textAlign = "right";
      rows.forEach((r, row) => {
        if (row !== mine && (row % everyRow !== 0 || (mine >= 0 && Math.abs(row - mine) < everyRow))) return;
        c.fillStyle = row === mine ? paper.ink : paper.faint;
        c.fillText(r.label, GUTTER - 6, HEADER + row * tall + tall / 2);
      });
      c.fillStyle = paper.faint;
      c.textAlign = "left";
      for (let i = 0; i < shown; i += everyColumn) if (shown < 2 || (shown - i) * wide >= c.measureText(columns[i]).width) c.fillText(columns[i], GUTTER + i * wide, HEADER / 2);
    }
    function draw() {
      layout();
      const shown = Math.min(columns.length, Math.floor(WIDEST / wide)), mine = chosen();
      const ratio = Math.min(2, window.devicePixelRatio || 1), w = GUTTER + shown * wide + 2, h = HEADER + rows.length * tall + 2;
      const scale = w * h * ratio * ratio > 3e7 ? 1 : ratio;
      canvas.width = w * scale; canvas.height = h * scale;
      canvas.style.width = w + "px"; canvas.style.height = h + "px";
      const c = canvas.getContext("2d");
      const paper = Object.fromEntries(["accent", "bad", "card", "faint", "ink"].map((name) => [name, colour(name)]));
      c.scale(scale, scale);
      c.font = "11px system-ui, sans-serif"; c.textBaseline = "middle";
      c.fillStyle = colour("empty");
      c.fillRect(GUTTER, HEADER, shown * wide, rows.length * tall);
      rows.forEach((r, row) => r.episodes.indices.forEach((index, i) => {
        const column = placeOf.get(index), strength = high > low ? 0.18 + (0.82 * (r.episodes.rewards[i] - low)) / (high - low) : 0.7;
        if (column < shown) cell(c, GUTTER + column * wide, HEADER + row * tall, strength, failures[row].get(i), paper);
      }));
      labels(c, shown, mine, paper);
      c.strokeStyle = paper.ink; c.lineWidth = 1.5;
      if (mine >= 0) c.strokeRect(GUTTER - 1, HEADER + mine * tall - 1, shown * wide + 1, tall);
      if (document.activeElement === canvas) c.strokeRect(GUTTER + cursor.column * wide - 1.5, HEADER + cursor.row * tall - 1.5, wide + 2, tall + 1);
    }

    function tell() {
      const r = rows[cursor.row], index = columns[cursor.column];
      if (!r || index === undefined) return;
      const i = r.episodes.indices.indexOf(index), failure = failures[cursor.row].get(i);
      const steps = i < 0 ? "" : plural(r.episodes.steps[i], "step");
      readout.textContent = r.title + ", Episode " + index + ": " + (i < 0 ? "not evaluated" : failure ? failure + " after " + steps : "reward " + number(r.episodes.rewards[i]) + ", " + steps) + ".";
    }
    function move(row, column) {
      cursor.row = Math.max(0, Math.min(rows.length - 1, row));
      cursor.column = Math.max(0, Math.min(columns.length - 1, column));
      tell();
    }
    function at(event) {
      const box = canvas.getBoundingClientRect();
      move(Math.floor((event.clientY - box.top - HEADER) / tall), Math.floor((event.clientX - box.left - GUTTER) / wide));
    }
    /* The cell under the keys stays in sight of a strip that scrolls. */
    function follow() {
      const x = GUTTER + cursor.column * wide, y = HEADER + cursor.row * tall;
      if (x < holder.scrollLeft + GUTTER || x + wide > holder.scrollLeft + holder.clientWidth) holder.scrollLeft = x - holder.clientWidth / 2;
      if (y < holder.scrollTop || y + tall > holder.scrollTop + holder.clientHeight) holder.scrollTop = y - holder.clientHeight / 2;
    }
    canvas.addEventListener("mousemove", at);
    canvas.addEventListener("click", (event) => { at(event); choose(cursor.row); });
    canvas.addEventListener("focus", draw);
    canvas.addEventListener("blur", draw);
    canvas.addEventListener("keydown", (event) => {
      const by = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
      if (event.key === "Enter") choose(cursor.row);
      if (!by) return;
      event.preventDefault();
      move(cursor.row + by[0], cursor.column + by[1]);
      draw(); follow();
    });
    const parts = [holder, readout];
    if (columns.length * 3 > WIDEST) parts.unshift(el("p", { class: "small faint" }, "Only the first " + WIDEST / 3 + " indices are drawn."));
    return { parts, draw, range: !rewards.length ? "" : low === high ? "all " + number(low) : number(low) + " to " + number(high) };
  }
  return { make };
})();
