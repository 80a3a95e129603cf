// The graph as a picture: layers from dagre, folded until they fit; chosen and expanded by keys or by hand.
"use strict";
(() => {
  const source = document.getElementById("graph-data");
  if (!source) return;
  const data = JSON.parse(source.textContent);
  const drawn = document.getElementById("drawn");
  const container = document.getElementById("graph");
  const panel = document.getElementById("graph-one");
  const WIDTH = 150, LINE = 14, PAD = 8, BESIDE = 10, BELOW = 12, LAYER = 16, FEW = 60, EASY = .9;
  const FONT = "12px system-ui, sans-serif";
  const GROUND = { decision: "accent", convention: "good", lesson_learned: "good", task: "warn", error: "bad" };
  const LINES = { replaces: ["accent", "solid"], rests: ["faint", "dotted"], needs: ["warn", "dashed"], disagrees: ["bad", "solid"], beside: ["good", "solid"], other: ["faint", "solid"] };

  // Labels are broken here, so that each is known to be inside its box.
  const measure = document.createElement("canvas").getContext("2d");
  measure.font = FONT;
  const wide = (text) => measure.measureText(text).width;
  const cut = (text, width) => {
    const signs = [...text];
    let low = 0, high = signs.length;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (wide(signs.slice(0, middle).join("")) <= width) low = middle; else high = middle - 1;
    }
    return signs.slice(0, Math.max(1, low)).join("");
  };
  const broken = (text, most, room) => {
    const lines = [];
    let rest = text;
    while (rest && lines.length < most) {
      let line = cut(rest, room);
      const space = line.length < rest.length && rest[line.length] !== " " ? line.lastIndexOf(" ") : line.length;
      if (space > 0) line = line.slice(0, space);
      rest = rest.slice(line.length).trimStart();
      lines.push(line);
    }
    if (rest) lines.push(`${cut(lines.pop(), room - wide(" …"))} …`);
    return lines;
  };

  const nodes = new Map(); // as the server sent them
  const degree = new Map(); // with how many each is linked
  const take = (found, most) => {
    const near = new Map(found.nodes.map((node) => [node.id, new Set()]));
    for (const node of found.nodes) for (const link of node.links) {
      near.get(node.id).add(link.to);
      near.get(link.to).add(node.id);
    }
    let left = 0;
    for (const node of found.nodes) {
      if (!nodes.has(node.id) && nodes.size >= most) { left += 1; continue; }
      const links = nodes.has(node.id) ? nodes.get(node.id).links : [];
      const known = new Set(links.map((link) => `${link.kind} ${link.to}`));
      nodes.set(node.id, { ...node, start: (nodes.get(node.id) || node).start, links: [...links, ...node.links.filter((link) => !known.has(`${link.kind} ${link.to}`))] });
      degree.set(node.id, Math.max(degree.get(node.id) || 0, node.more + near.get(node.id).size));
    }
    return left;
  };

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const style = () => [
    { selector: "node", style: {
      shape: "round-rectangle", width: WIDTH, height: "data(high)", "background-color": colour("raised"), "border-width": 2, "border-color": (node) => colour(GROUND[node.data("group")] || "faint"),
      label: "data(label)", color: colour("text"), "font-size": 12, "font-family": FONT.slice(5), "line-height": LINE / 12, "text-wrap": "wrap", "text-max-width": WIDTH * 2, "text-valign": "center", "text-halign": "center", "min-zoomed-font-size": 0 } },
    { selector: "node[group = 'evidence']", style: { shape: "rectangle", "border-style": "dotted" } },
    { selector: "node[status = 'superseded'], node[status = 'invalidated'], node[status = 'rejected'], node[status = 'proposed'], node[status = 'deprecated'], node[status = 'expired'], node[status = 'scheduled']", style: { color: colour("faint"), "border-style": "dashed", "background-color": colour("ground") } },
    { selector: "node[status = 'pending']", style: { "border-style": "double", "border-width": 4 } },
    { selector: "node[?start]", style: { "background-color": colour("mark"), "border-width": 4 } },
    { selector: "node.chosen", style: { "outline-width": 4, "outline-color": colour("accent"), "outline-offset": 2, "z-index": 2 } },
    { selector: "edge", style: { width: 1.5, "curve-style": "bezier", "target-arrow-shape": "triangle", "arrow-scale": .8, "line-color": (edge) => colour(LINES[edge.data("family")][0]), "target-arrow-color": (edge) => colour(LINES[edge.data("family")][0]), "line-style": (edge) => LINES[edge.data("family")][1] } },
    { selector: "edge[family = 'disagrees']", style: { width: 4, "target-arrow-shape": "none" } },
    { selector: "edge.chosen", style: { width: 4, "z-index": 1 } },
  ];
  drawn.hidden = false;
  const cy = window.cytoscape({ container, style: style(), minZoom: .1, maxZoom: 3, boxSelectionEnabled: false, autounselectify: true, autoungrabify: true, userZoomingEnabled: false });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => cy.style(style()));

  const put = () => {
    const rows = nodes.size > FEW ? 2 : 3;
    cy.batch(() => {
      for (const [id, node] of nodes) {
        if (cy.getElementById(id).empty()) cy.add({ group: "nodes", data: { id, group: node.group, status: node.status, start: node.start } });
      }
      for (const [id, node] of nodes) for (const link of node.links) {
        const both = link.family === "disagrees" ? [id, link.to].sort() : [id, link.to]; // who disagrees does so once
        const edge = `${link.family === "disagrees" ? link.family : link.kind} ${both.join(" ")}`;
        if (nodes.has(link.to) && cy.getElementById(edge).empty()) cy.add({ group: "edges", data: { id: edge, source: id, target: link.to, family: link.family, text: link.text } });
      }
      for (const [id, node] of nodes) {
        const more = degree.get(id) - cy.getElementById(id).neighborhood("node").size();
        node.more = Math.max(0, more);
        const tail = node.more ? ` +${node.more}` : "";
        const lines = broken(node.label, 2, WIDTH - 2 * PAD - wide(tail));
        if (rows === 3) lines.unshift(cut(node.class, WIDTH - 2 * PAD));
        cy.getElementById(id).data({ label: lines.join("\n") + tail, high: rows * LINE + PAD });
      }
    });
    const began = performance.now();
    arrange(rows * LINE + PAD);
    performance.measure("graph-layout", { start: began });
  };

  const dagred = () => {
    cy.layout({ name: "dagre", rankDir: "TB", nodeSep: BESIDE, edgeSep: 0, rankSep: BELOW + LAYER, fit: false, animate: false }).run();
    const layers = Map.groupBy(cy.nodes().toArray(), (node) => Math.round(node.position("y")));
    return [...layers].sort((a, b) => a[0] - b[0]).map(([, layer]) => layer.sort((a, b) => a.position("x") - b.position("x")));
  };
  // Each stands below all that lead to it, rings left open; in its layer it stands below and above what it is linked with.
  const layered = () => {
    const depth = new Map(), place = new Map();
    const ends = new Map(cy.nodes().map((node) => [node.id(), { above: [], below: [] }]));
    for (const edge of cy.edges().toArray()) {
      ends.get(edge.data("source")).below.push(edge.data("target"));
      ends.get(edge.data("target")).above.push(edge.data("source"));
    }
    const find = (id) => {
      if (!depth.has(id)) {
        depth.set(id, -1); // who comes back here while it is sought leaves the ring open
        depth.set(id, ends.get(id).above.reduce((most, other) => Math.max(most, find(other) + 1), 0));
      }
      return depth.get(id);
    };
    for (const id of ends.keys()) find(id);
    for (const [id, { above, below }] of ends) if (!above.length && below.length) depth.set(id, Math.max(0, Math.min(...below.map((other) => depth.get(other))) - 1));
    const sorted = [...Map.groupBy(ends.keys(), (id) => depth.get(id))].sort((a, b) => a[0] - b[0]).map(([, layer]) => layer);
    const settle = (layer) => layer.forEach((id, at) => place.set(id, (at + .5) / layer.length));
    sorted.forEach(settle);
    for (let sweep = 0; sweep < 6; sweep += 1) {
      const side = sweep % 2 ? "below" : "above";
      for (const layer of sweep % 2 ? sorted.toReversed() : sorted) {
        const wanted = new Map(layer.map((id) => [id, ends.get(id)[side].reduce((sum, other, _, all) => sum + place.get(other) / all.length, 0) || place.get(id)]));
        settle(layer.sort((a, b) => wanted.get(a) - wanted.get(b)));
      }
    }
    return sorted.map((layer) => layer.map((id) => cy.getElementById(id)));
  };
  // Layers in rows of so many, these in so many blocks side by side, that they are seen as large as can be, up to EASY.
  const folded = (layers, down, gap) => {
    let best = { worth: -1 };
    const widest = Math.max(...layers.map((layer) => layer.length));
    for (let columns = Math.min(widest, 40); columns >= 1; columns -= 1) { // a layer whole, where it is seen as large
      const rows = layers.flatMap((layer) => Array.from({ length: Math.ceil(layer.length / columns) },
        (_, at) => ({ begins: at === 0, nodes: layer.slice(at * columns, (at + 1) * columns) })));
      for (let count = 1; count <= Math.min(rows.length, 20); count += 1) {
        const length = Math.ceil(rows.length / count), blocks = [];
        for (let at = 0; at < rows.length; at += length) {
          const some = rows.slice(at, at + length);
          blocks.push({ rows: some, width: Math.max(...some.map((row) => row.nodes.length)) * (WIDTH + BESIDE), height: some.reduce((sum, row) => sum + down + (row.begins ? gap : 0), 0) });
        }
        const width = blocks.reduce((sum, block) => sum + block.width + 2 * LAYER, 0);
        const zoom = Math.min(cy.width() / width, cy.height() / Math.max(...blocks.map((block) => block.height)));
        const worth = Math.min(zoom, EASY) * .98 ** blocks.length;
        if (worth > best.worth) best = { worth, zoom: Math.min(zoom, EASY), blocks };
      }
    }
    return best;
  };

  // In which layer each is, and beside which: as dagre says where they are few; many, it would take many seconds.
  const arrange = (high) => {
    const down = high + BELOW;
    const many = nodes.size > FEW || cy.edges().size() > 2 * FEW, gap = many ? LAYER / 3 : LAYER;
    const best = folded(many ? layered() : dagred(), down, gap);
    const box = cy.nodes().boundingBox();
    if (many || best.zoom > Math.min(cy.width() / box.w, cy.height() / box.h)) cy.batch(() => {
      let left = 0;
      for (const block of best.blocks) {
        let y = 0;
        for (const row of block.rows) {
          if (row.begins) y += gap;
          row.nodes.forEach((node, at) => node.position({ x: left + (block.width + (2 * at + 1 - row.nodes.length) * (WIDTH + BESIDE)) / 2, y }));
          y += down;
        }
        left += block.width + 2 * LAYER;
      }
    });
    all();
  };
  const start = () => cy.nodes("[?start]").first();
  const all = () => {
    cy.fit(cy.nodes(), 6);
    if (cy.zoom() > 1.2 || cy.zoom() < .4) { // too small to be read: the beginning of it
      cy.zoom(Math.min(1.2, Math.max(.4, cy.zoom())));
      cy.center(cy.zoom() > .4 || start().empty() ? cy.nodes() : start());
    }
  };

  const made = (name, text, ...children) => {
    const element = document.createElement(name);
    if (text !== null) element.textContent = text;
    element.append(...children);
    return element;
  };
  const link = (href, text) => Object.assign(made("a", text), { href });
  let chosen = null;
  const choose = (id) => {
    cy.elements(".chosen").removeClass("chosen");
    chosen = id;
    panel.hidden = id === null;
    if (id === null) return;
    const node = nodes.get(id), element = cy.getElementById(id);
    element.addClass("chosen");
    element.connectedEdges().addClass("chosen");
    const at = element.renderedPosition();
    if (at.x < 20 || at.y < 20 || at.x > cy.width() - 20 || at.y > cy.height() - 20) cy.center(element);
    const links = element.connectedEdges().map((edge) => {
      const from = edge.source().id() === id, other = nodes.get(edge.connectedNodes().not(element).id());
      const button = Object.assign(made("button", other.label), { type: "button", className: "plain" });
      button.addEventListener("click", () => { choose(other.id); container.focus(); });
      return made("li", from ? `${edge.data("text")}: ` : `${edge.data("text")} this: `, button);
    });
    const ways = made("p", null, link(node.graph, "Graph around it"));
    ways.className = "ways";
    if (node.link) ways.prepend(link(node.link, "Page"));
    if (node.more) {
      const button = Object.assign(made("button", `Expand: ${node.more} more`), { type: "button" });
      button.addEventListener("click", () => { expand(id); container.focus(); });
      ways.append(button);
    }
    panel.replaceChildren(made("h2", [node.class, node.status].filter(Boolean).join(", ")),
      Object.assign(made("p", node.text), { className: "text", dir: "auto" }), made("ul", null, ...links), ways);
  };
  const say = (text) => panel.append(Object.assign(made("p", text), { role: "status" }));
  const expand = async (id) => {
    try {
      const response = await fetch(`${nodes.get(id).graph.replace("/graph?", "/graph.json?")}&depth=1`, { headers: { Accept: "application/json" } });
      const found = await response.json();
      if (!response.ok) throw new Error(found.detail || `status ${response.status}`);
      const left = take(found, data.most);
      put();
      cy.center(cy.getElementById(id));
      choose(id);
      container.setAttribute("aria-label", `Graph of ${nodes.size} nodes`);
      if (left) say(`${left} more find no room among ${data.most}: draw the graph around this one.`);
    } catch (error) {
      choose(id);
      say(`It could not be expanded: ${error.message}`);
    }
  };

  const towards = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  const go = ([x, y]) => {
    if (chosen === null) return choose((start().nonempty() ? start() : cy.nodes().first()).id());
    const here = cy.getElementById(chosen).position();
    let best = null, least = Infinity;
    for (const node of cy.nodes().toArray()) {
      const at = node.position(), along = (at.x - here.x) * x + (at.y - here.y) * y;
      const beside = Math.abs((at.x - here.x) * y) + Math.abs((at.y - here.y) * x);
      if (along > 1 && along + 3 * beside < least) [best, least] = [node, along + 3 * beside];
    }
    if (best) choose(best.id());
  };
  const closer = (factor) => cy.zoom({ level: cy.zoom() * factor, renderedPosition: { x: cy.width() / 2, y: cy.height() / 2 } });
  const does = {
    closer: () => closer(1.25),
    farther: () => closer(.8),
    all,
    window: (button) => {
      button.setAttribute("aria-pressed", String(drawn.classList.toggle("window")));
      cy.resize();
      put();
    },
  };
  for (const button of drawn.querySelectorAll("[data-does]")) button.addEventListener("click", () => does[button.dataset.does](button));
  container.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const keys = { "+": does.closer, "-": does.farther, 0: all, Escape: () => choose(null), Home: () => { choose(null); go([0, 0]); } };
    if (chosen !== null) {
      const node = nodes.get(chosen);
      keys.Enter = () => expand(chosen);
      keys.g = () => location.assign(node.graph);
      if (node.link) keys.o = () => location.assign(node.link);
    }
    const done = towards[event.key] ? () => go(towards[event.key]) : keys[event.key];
    if (!done) return;
    event.preventDefault();
    done();
  });
  container.addEventListener("focus", () => { cy.userZoomingEnabled(true); if (chosen === null) go([0, 0]); });
  container.addEventListener("blur", () => cy.userZoomingEnabled(false));
  cy.on("tap", "node", (event) => { choose(event.target.id()); container.focus({ preventScroll: true }); });
  cy.on("tap", (event) => { if (event.target === cy) choose(null); });
  cy.on("dbltap", "node", (event) => expand(event.target.id()));
  cy.on("mouseover", "node", (event) => { container.title = nodes.get(event.target.id()).text; });
  cy.on("mouseout", "node", () => container.removeAttribute("title"));

  document.getElementById("listed").open = false;
  take(data, data.most);
  put();
})();
