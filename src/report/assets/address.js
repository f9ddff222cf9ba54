// The address of a view is everything after "#": "/run/<id>?axis=time&zoom=10,200". So a link holds view, zoom, and selection.
const address = () => {
  const [path, query = ""] = decodeURI(location.hash.slice(1)).split("?");
  return {path: path.split("/").filter(Boolean), query: new URLSearchParams(query)};
};
const addressText = (path, query) => "#/" + path.join("/") + (String(query) ? "?" + query : "");
// Changes one value of the address without a new entry in the browser's history.
const keep = (name, value) => {
  const {path, query} = address();
  value ? query.set(name, value) : query.delete(name);
  history.replaceState(null, "", addressText(path, query));
};
const kept = name => address().query.get(name) || "";
