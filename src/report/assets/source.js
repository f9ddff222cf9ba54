// Where data comes from: the page itself (a file), or the server (the dashboard). Both give the same documents.
const frozenSource = documents => ({
  live: false,
  load: async ([kind, id]) => kind === "run" && documents[id] ? documents[id] : Promise.reject(new Error("This file does not hold this view.")),
  start: [documents.length > 1 ? "compare" : "run", documents.map((_, i) => i).join(",")],
  subscribe: () => {},
});

const serverSource = () => ({
  live: true,
  load: async path => {
    const answer = await fetch("/api/" + path.join("/"));
    if (answer.ok) return answer.json();
    throw Object.assign(new Error((await answer.text()).trim()), {status: answer.status});
  },
  start: ["runs"],
  // Calls `changed` with the ids of the runs that changed; with all of them after the connection was lost.
  subscribe: (changed, connected) => {
    let events = null;
    const connect = () => {
      if (events) events.close();
      events = new EventSource("/api/events");
      events.onopen = () => connected(true);
      events.onmessage = event => changed(JSON.parse(event.data));
      events.onerror = () => {
        connected(false);
        if (events.readyState === EventSource.CLOSED) setTimeout(connect, 2000);  // the browser gave up
      };
    };
    connect();
    // A connection may not survive the sleep of the machine.
    let last = Date.now();
    setInterval(() => {
      if (Date.now() - last > 20000) connect();
      last = Date.now();
    }, 5000);
  },
});
