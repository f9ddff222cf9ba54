// The list of runs.
const states = ["reading", "live", "stalled", "done", "unreadable"];
const stateOf = run => run.problem ? "unreadable" : run.state;
const ago = (unix, now) => now - unix > 7 * 86400 ? day(unix) : now - unix < 2 ? "now" : duration(Math.floor(now - unix)).replace(/\.0+ /, " ") + " ago";
const sparkline = values => {
  const present = values.filter(known);
  if (present.length < 2) return null;
  const [width, height] = [120, 24];
  const top = Math.max(...present) || 1;
  const points = values.map((value, i) => known(value) ? `${(i * width / (values.length - 1)).toFixed(1)},${(height - 1 - (height - 2) * value / top).toFixed(1)}` : null);
  return svg("svg", {class: "spark", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "over time"},
    svg("polygon", {points: `0,${height} ${points.filter(Boolean).join(" ")} ${width},${height}`}), svg("polyline", {points: points.filter(Boolean).join(" ")}));
};
const order = {live: 0, reading: 1, stalled: 2, done: 3, unreadable: 4};
const sortRuns = runs => [...runs].sort((a, b) => order[stateOf(a)] - order[stateOf(b)] || (b.last_unix || 0) - (a.last_unix || 0) || a.name.localeCompare(b.name));
const matches = (run, words) => {
  const all = [run.name, run.model, run.device, stateOf(run)].filter(Boolean).join(" ").toLowerCase();
  return words.toLowerCase().split(/\s+/).every(word => all.includes(word));
};
const ranksText = run => (run.ranks || run.world_size ? whole(run.ranks) : "n/a");
const silentText = run => run.silent_ranks ? h("small", {class: "low"}, whole(run.silent_ranks) + " silent") : null;

const stepText = run => text(run.step, whole) + (known(run.total_steps) ? " / " + whole(run.total_steps) : "");
const etaText = run => run.state === "live" ? text(run.remaining_seconds, duration) : "–";

const runsView = () => {
  const chosen = new Set(kept("pick").split(",").filter(Boolean));
  const search = h("input", {type: "search", id: "search", placeholder: "Search runs ( / )", "aria-label": "search runs", value: kept("search")});
  const compare = h("a", {class: "button", hidden: ""}, "");
  const rows = h("tbody");
  const list = h("div", {class: "scroll tall"});
  const note = h("p", {class: "note"});
  const columns = [["", ""], ["run", ""], ["state", ""], ["over time", "wide"], ["MFU", "r"], ["tokens/s", "r mid"], ["step", "r mid"], ["step time", "r mid"], ["ETA", "r mid"], ["device", "wide"], ["ranks", "r wide"], ["last step", "r wide"]];
  let data = {runs: [], reading: 0};
  const showCompare = () => {
    compare.hidden = chosen.size < 2 || chosen.size > 8;
    compare.textContent = `Compare ${chosen.size} runs`;
    compare.setAttribute("href", "#/compare/" + [...chosen].join(","));
    keep("pick", [...chosen].join(","));
  };
  const row = run => {
    const pick = h("input", {type: "checkbox", id: "pick-" + run.id, "aria-label": "compare " + visible(run.name)});
    pick.checked = chosen.has(run.id);
    pick.addEventListener("change", () => { pick.checked ? chosen.add(run.id) : chosen.delete(run.id); showCompare(); });
    return h("tr", {}, [pick,
      h("span", {}, h("a", {href: "#/run/" + run.id, id: "run-" + run.id}, breakable(run.name.replaceAll("/", " / "))), h("small", {class: "clamp", title: run.problem || run.model}, run.problem || run.model || "")),
      h("span", {class: "state " + stateOf(run)}, stateOf(run)), sparkline(run.sparkline), text(run.mfu, percent),
      text(run.tokens_per_second, value => si(value)), stepText(run), text(run.step_seconds, duration), etaText(run), h("span", {class: "clamp", title: run.device}, run.device || "n/a"), [ranksText(run), silentText(run)],
      text(run.last_unix, unix => ago(unix, data.now_unix))].map((cell, i) => h("td", {class: columns[i][1], "data-name": columns[i][0]}, cell)));
  };
  const draw = () => {
    const found = sortRuns(data.runs.filter(run => matches(run, search.value)));
    const most = 500;
    keepFocus(() => rows.replaceChildren(...found.slice(0, most).map(row)));
    const count = state => data.runs.filter(run => stateOf(run) === state).length;
    const counts = states.map(state => count(state) ? `${whole(count(state))} ${state}` : null).filter(Boolean);
    note.textContent = data.runs.length ? counts.join(", ") + (found.length > most ? `; the first ${most} are shown` : "") + (data.reading ? `; reading ${whole(data.reading)} more` : "") + "."
      : data.reading ? `Reading ${whole(data.reading)} runs.` : "No run yet. A run appears here as soon as a training with flopmeter writes below this directory, for example: flopmeter run -- python train.py";
    list.hidden = !data.runs.length;
    showCompare();
  };
  search.addEventListener("input", () => { keep("search", search.value); draw(); });
  return {
    load: () => source.load(["runs"]),
    changedBy: () => true,
    first: () => {
      document.title = "flopmeter";
      document.getElementById("head").replaceChildren(h("h1", {class: "list-title"}, "Runs"));
      list.replaceChildren(h("table", {class: "runs"}, h("thead", {}, h("tr", {}, columns.map(([name, side]) => h("th", {class: side, scope: "col"}, name)))), rows));
      document.getElementById("page").replaceChildren(h("section", {}, h("div", {class: "bar-head"}, search, compare), note, list));
    },
    show: next => { data = next; draw(); },
  };
};
