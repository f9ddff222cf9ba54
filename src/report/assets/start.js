// Opens the view that the address names, and keeps it up to date.
const embedded = document.getElementById("data");
const source = embedded ? frozenSource([].concat(JSON.parse(embedded.textContent))) : serverSource();

let view = null;
const viewOf = path => path[0] === "runs" ? runsView() : path[0] === "compare" ? compareView(path[1].split(",")) : runView(path);
const refresh = async () => {
  const wanted = view;
  try {
    const data = await wanted.load();
    if (view === wanted) wanted.show(data);
  } catch (error) {
    // If the server does not answer, the page stays as it is.
    if (view === wanted && (error.status || !source.live)) document.getElementById("page").replaceChildren(section("Cannot show this view", null, missing(error.message)));
    if (!error.status && source.live && !(error instanceof TypeError)) throw error;
  }
};
let opened = null;
const open_ = () => {
  const path = address().path.length ? address().path : source.start;
  if (view && path.join("/") === opened) return;
  opened = path.join("/");
  forgetCharts();
  for (const id of ["head", "page", "foot"]) document.getElementById(id).replaceChildren();
  showBar(path);
  view = viewOf(path);
  if (view.first) view.first();
  scrollTo(0, 0);
  return refresh();
};

// The bar of the dashboard: the way back to the list, exports, and whether the server answers.
const status_ = h("span", {class: "status", role: "status"});
const showBar = path => {
  if (!source.live) return;
  const bar = document.getElementById("bar");
  bar.hidden = false;
  const run = path[0] === "run" ? path[1] : null;
  bar.replaceChildren(path[0] === "runs" ? h("b", {}, "flopmeter") : h("a", {href: "#/runs"}, "Runs"),
    run && path[2] ? h("a", {href: "#/run/" + run}, "All ranks") : "",
    run && !path[2] ? h("a", {href: `/api/run/${run}/curves.csv`, download: ""}, "CSV") : "",
    run && !path[2] ? h("a", {href: `/api/run/${run}/page.html`, download: ""}, "Save page") : "", status_);
};

addEventListener("hashchange", open_);
addEventListener("keydown", event => {
  if (event.key !== "/" || /INPUT|TEXTAREA/.test(event.target.tagName)) return;
  event.preventDefault();
  source.live && view && !document.getElementById("search") ? location.hash = "#/runs" : (document.getElementById("search") || document.body).focus();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
open_();

// At most one request per second, and none for a page that is not visible.
let due = null;
let behind = false;
const refreshSoon = () => {
  behind = document.hidden;
  if (due || behind) return;
  due = setTimeout(async () => { await refresh(); due = null; }, 1000);
};
addEventListener("visibilitychange", () => { if (!document.hidden && behind) refreshSoon(); });
source.subscribe(ids => { if (view.changedBy(ids)) refreshSoon(); }, connected => {
  status_.textContent = connected ? "" : "The server does not answer. Trying again.";
});

// Paper has its own width and is never dark, so charts are drawn for it.  A canvas of a new size prints empty: its image does not.
const forPaper = printing => {
  document.documentElement.classList.toggle("printing", printing);
  for (const {graph} of charts) {
    graph.updateOptions({pixelRatio: printing ? 3 : null}, true);
    graph.resize();
  }
  redraw();
  for (const image of document.querySelectorAll(".chart img")) image.remove();
  if (!printing) return;
  for (const canvas of document.querySelectorAll(".chart canvas"))
    canvas.after(h("img", {src: canvas.toDataURL(), alt: "", style: {position: "absolute", width: canvas.style.width, height: canvas.style.height}}));
};
addEventListener("beforeprint", () => forPaper(true));
addEventListener("afterprint", () => forPaper(false));
