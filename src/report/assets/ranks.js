// Ranks: own time against the median, a heat map of rank and time, and a table.
const signed = ratio => (ratio < 0 ? "−" : "+") + points(Math.abs(ratio)) + " %";
const rankLink = (id, rank) => source.live ? h("a", {href: `#/run/${id}/rank/${rank}`}, String(rank)) : String(rank);

// Colors of the heat map: the card's color at the median, the color of a fault for 20 % more and above, blue for less.
const heatColor = off => {
  const strength = Math.min(1, Math.abs(off) / 0.2);
  return `color-mix(in srgb, var(--${off > 0 ? "low" : "accent"}) ${Math.round(100 * strength)}%, var(--track))`;
};
// The lower one of two: against itself, the slower of two ranks would not be slow.
const median = values => {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted.length ? sorted[(sorted.length - 1) >> 1] : null;
};
const heatMap = (id, map) => {
  const columns = Math.max(0, ...map.rows.map(row => row.length));
  if (!columns || map.rows.length < 2) return null;
  const middles = Array.from({length: columns}, (_, i) => median(map.rows.map(row => row[i]).filter(known)));
  const canvas = h("canvas", {class: "heat", role: "img", tabindex: "0", "aria-label": "own time by rank and step against the median rank"});
  const line = h("p", {class: "note"});
  const idle = "Red: slower than the median rank at that time; blue: faster; empty: no record." + (source.live ? " Click a cell to open the rank." : "");
  line.textContent = idle;
  const draw = () => {
    const [width, height] = [canvas.width = columns, canvas.height = map.rows.length];
    const context = canvas.getContext("2d");
    const probe = h("i", {style: {display: "none"}});
    document.body.append(probe);
    const shades = new Map();
    const shade = off => {
      const step = Math.round(100 * Math.max(-0.2, Math.min(0.2, off)));
      if (!shades.has(step)) {
        probe.style.color = heatColor(step / 100);
        shades.set(step, getComputedStyle(probe).color);
      }
      return shades.get(step);
    };
    context.clearRect(0, 0, width, height);
    map.rows.forEach((row, y) => row.forEach((value, x) => {
      if (!known(value)) return;
      context.fillStyle = shade(value / middles[x] - 1);
      context.fillRect(x, y, 1, 1);
    }));
    probe.remove();
  };
  canvas.style.height = Math.max(64, Math.min(420, map.rows.length * (map.rows.length < 40 ? 14 : 3))) + "px";
  const at = event => {
    const box = canvas.getBoundingClientRect();
    const cell = (position, size, count) => Math.max(0, Math.min(count - 1, Math.floor(position / size * count)));
    return [cell(event.clientX - box.left, box.width, columns), cell(event.clientY - box.top, box.height, map.rows.length)];
  };
  canvas.addEventListener("mousemove", event => {
    const [x, y] = at(event);
    const value = map.rows[y][x];
    const from = map.first_step + x * map.column_steps;
    const where = map.column_steps > 1 ? `steps ${whole(from)}–${whole(from + map.column_steps - 1)}` : `step ${whole(from)}`;
    line.textContent = known(value) ? `Rank ${map.slowest[y][x]}${map.ranks_per_row > 1 ? `, the slowest of ${map.ranks_per_row}` : ""}, ${where}: ${duration(value)}, ${signed(value / middles[x] - 1)} against the median.`
      : `Rank ${map.first_ranks[y]}, ${where}: no record.`;
  });
  canvas.addEventListener("mouseleave", () => { line.textContent = idle; });
  canvas.addEventListener("click", event => {
    const [x, y] = at(event);
    if (source.live) location.hash = `#/run/${id}/rank/${known(map.rows[y][x]) ? map.slowest[y][x] : map.first_ranks[y]}`;
  });
  const first = map.first_ranks[0], last = map.last_rank;
  redraws.add(draw);
  draw();
  return h("div", {}, h("h3", {}, "Rank and time"),
    h("div", {class: "strip-box"}, h("div", {class: "strip-axis"}, h("span", {}, "rank " + whole(first)), h("span", {}, whole(last))), canvas), line);
};

const ranksSection = ({ranks, rank_map, id}) => {
  if (ranks.count < 2) return null;
  const off = cell => cell.step_seconds / ranks.median_seconds - 1;
  const scale = Math.max(0.05, ...ranks.strip.map(cell => Math.abs(off(cell))));
  const shown_ = cell => ({height: 50 * Math.abs(off(cell)) / scale + "%", [off(cell) < 0 ? "top" : "bottom"]: "50%"});
  const each = Math.ceil(ranks.count / ranks.strip.length);
  const all = ranks.rows.length === ranks.count;
  return section(whole(ranks.count) + " ranks",
    `Time that a rank spends on its own work in a step, against the median of ${duration(ranks.median_seconds)}` +
    (each > 1 ? `; each bar is the slowest of ${each} ranks` : "") + ". The whole job runs at the pace of the slowest.",
    h("div", {class: "strip-box"},
      h("div", {class: "strip-axis"}, h("span", {}, signed(scale)), h("span", {}, "median"), h("span", {}, signed(-scale))),
      h("div", {class: ranks.strip.length > 200 ? "strip many" : "strip", role: "img", "aria-label": "own time by rank against the median"}, ranks.strip.map(cell =>
        h("span", {title: `rank ${cell.rank}: ${duration(cell.step_seconds)}, ${signed(off(cell))}`}, h("i", {class: cell.slow ? "slow" : null, style: shown_(cell)}))))),
    heatMap(id, rank_map),
    all ? null : h("p", {class: "note"}, `The ${ranks.rows.length} slowest:`),
    table([["rank", "r"], ["own time per step", "r"], ["against median", "r"], ["MFU", "r"], ["waiting for data", "r"], ["communication", "r"], ["peak memory", "r"], ["steps", "r"], ["last step", "r"], ["lost records", "r"]],
      ranks.rows.map(row => ({mark: row.slow || row.silent ? "slow" : null, cells: [rankLink(id, row.rank), duration(row.step_seconds), signed(off(row)), text(row.mfu, percent),
        text(row.data_share, percent), text(row.communication_share, percent), text(row.memory_peak_bytes, bytes), whole(row.steps), whole(row.last_step) + (row.silent ? ", silent" : ""), whole(row.dropped_records)]}))));
};
