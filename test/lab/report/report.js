"use strict";
(() => {
  const NS = "http://www.w3.org/2000/svg";
  const W = 760, LEFT = 62, RIGHT = 14;
  const end = Math.max(10, ...runs.flatMap(r => (r.samples || []).map(s => s.t)));
  const x = t => LEFT + (W - LEFT - RIGHT) * Math.min(t, end) / end;

  const node = (name, attrs, parent, text) => {
    const n = document.createElementNS(NS, name);
    for (const k in attrs) n.setAttribute(k, attrs[k]);
    if (text !== undefined) n.textContent = text;
    if (parent) parent.appendChild(n);
    return n;
  };
  const html = (name, cls, parent, text) => {
    const n = document.createElement(name);
    if (cls) n.className = cls;
    if (text !== undefined) n.textContent = text;
    parent.appendChild(n);
    return n;
  };
  const clock = t => Math.floor(t / 60) + ":" + String(Math.floor(t % 60)).padStart(2, "0");
  const round = v => Math.round(v * 10) / 10;

  // steps is the path of a value that holds until the next sample.
  const steps = (samples, value, y) => {
    let d = "", last;
    for (const s of samples) {
      const v = value(s);
      d += last === undefined ? `M${round(x(s.t))} ${round(y(v))}` : (v === last ? "" : `H${round(x(s.t))}V${round(y(v))}`);
      last = v;
    }
    return last === undefined ? "" : d + `H${round(x(samples[samples.length - 1].t))}`;
  };
  const line = (samples, value, y) => samples.map((s, i) => (i ? "L" : "M") + round(x(s.t)) + " " + round(y(value(s)))).join("");
  const area = (d, samples, y) => d && d + `V${round(y(0))}H${round(x(samples[0].t))}Z`;

  const niceStep = top => [1, 2, 5, 10, 20, 50, 100, 200, 500].find(s => top / s <= 5) || Math.ceil(top / 5);

  const legend = (parent, items) => {
    const l = html("div", "legend", parent);
    for (const [kind, label, paint] of items) {
      const s = html("span", "", l);
      const g = node("svg", {width: 18, height: 10, viewBox: "0 0 18 10", style: "width:18px;height:10px"}, s);
      if (kind === "line") node("path", {d: "M0 5H18", stroke: paint, "stroke-width": 2.5, fill: "none"}, g);
      else if (kind === "dash") node("path", {d: "M0 5H18", stroke: paint, "stroke-width": 2, "stroke-dasharray": "5 3", fill: "none"}, g);
      else if (kind === "cross") node("path", {d: "M5 1L13 9M13 1L5 9", stroke: paint, "stroke-width": 2.5}, g);
      else node("rect", {x: 0, y: 0, width: 18, height: 10, rx: 2, fill: paint}, g);
      s.append(label);
    }
  };

  const timeAxis = (svg, run, top, bottom) => {
    const every = [10, 15, 30, 60, 120, 300].find(s => end / s <= 10) || 600;
    for (let t = 0; t <= end; t += every) {
      node("line", {x1: x(t), x2: x(t), y1: bottom, y2: bottom + 4, class: "axis"}, svg);
      node("text", {x: x(t), y: bottom + 16, "text-anchor": "middle"}, svg, clock(t));
    }
    node("line", {x1: LEFT, x2: W - RIGHT, y1: bottom, y2: bottom, class: "axis"}, svg);
    for (const p of (run.phases || []).slice(1)) node("line", {x1: x(p.from), x2: x(p.from), y1: top, y2: bottom, class: "grid"}, svg);
  };

  const plot = (host, run, o) => {
    html("h3", "", host, o.title);
    legend(host, o.legend);
    const height = o.height || 150, top = o.phases ? 20 : 8, bottom = height - 22;
    const svg = node("svg", {viewBox: `0 0 ${W} ${height}`, role: "img", "aria-label": o.title}, host);
    const most = Math.max(o.least || 1, ...runs.flatMap(r => (r.samples || []).map(o.top))); // of all runs: they are compared
    const step = niceStep(most), limit = Math.ceil(most / step) * step;
    const y = v => bottom - (bottom - top) * v / limit;
    for (let v = 0; v <= limit; v += step) {
      if (v) node("line", {x1: LEFT, x2: W - RIGHT, y1: y(v), y2: y(v), class: "grid"}, svg);
      node("text", {x: LEFT - 8, y: y(v) + 4, "text-anchor": "end"}, svg, v);
    }
    timeAxis(svg, run, top, bottom);
    if (o.phases) for (const p of run.phases || []) {
      if (x(p.to) - x(p.from) > p.name.length * 6.2) node("text", {x: (x(p.from) + x(p.to)) / 2, y: 12, "text-anchor": "middle", class: "strong"}, svg, p.name);
    }
    o.draw(svg, y);
    hover(svg, run, top, bottom);
  };

  const tip = document.getElementById("tip");
  const cursors = [];
  const hover = (svg, run, top, bottom) => {
    const c = node("line", {class: "cursor", y1: top, y2: bottom, visibility: "hidden"}, svg);
    cursors.push([run, c]);
    svg.addEventListener("pointermove", e => {
      const box = svg.getBoundingClientRect();
      const t = ((e.clientX - box.left) / box.width * W - LEFT) / (W - LEFT - RIGHT) * end;
      const last = run.samples[run.samples.length - 1];
      if (!last || t < 0 || t > last.t + 1) { leave(); return; }
      const s = run.samples.reduce((a, b) => Math.abs(b.t - t) < Math.abs(a.t - t) ? b : a);
      for (const [r, n] of cursors) {
        n.setAttribute("x1", x(s.t)); n.setAttribute("x2", x(s.t));
        n.setAttribute("visibility", r === run ? "visible" : "hidden");
      }
      tip.replaceChildren();
      html("b", "", tip, clock(s.t));
      for (const [name, v] of [["sessions", s.sessions], ["rooms open", s.rooms], ["desired", s.desired], ["present", s.present], ["draining", s.draining], ["rooms cut", s.cuts]]) {
        const d = html("div", "", tip);
        html("span", "", d, name); html("span", "", d, v);
      }
      tip.hidden = false;
      const w = tip.offsetWidth, h = tip.offsetHeight;
      tip.style.left = Math.min(e.clientX + 14, innerWidth - w - 8) + "px";
      tip.style.top = Math.min(e.clientY + 14, innerHeight - h - 8) + "px";
    });
    const leave = () => { tip.hidden = true; for (const [, n] of cursors) n.setAttribute("visibility", "hidden"); };
    svg.addEventListener("pointerleave", leave);
  };

  const lanes = (host, run) => {
    html("h3", "", host, "Instances, one lane each");
    legend(host, [["box", "sessions (full height: twice the target)", "var(--load)"], ["box", "draining: no new room", "var(--drain-wash)"], ["box", "released and ending", "var(--ending)"], ["cross", "room cut", "var(--bad)"]]);
    const row = 30, list = run.lanes || [], height = list.length * row + 30, bottom = list.length * row + 4;
    const svg = node("svg", {viewBox: `0 0 ${W} ${height}`, role: "img", "aria-label": "Life of each instance"}, host);
    timeAxis(svg, run, 2, bottom);
    list.forEach((lane, i) => {
      const y0 = 4 + i * row, h = row - 8;
      node("text", {x: LEFT - 8, y: y0 + h / 2 + 4, "text-anchor": "end", class: "strong"}, svg, lane.name);
      for (const s of lane.spans || []) {
        const w = Math.max(1, x(s.to) - x(s.from)), fill = {up: "var(--load-wash)", draining: "var(--drain-wash)", released: "var(--ending)", ending: "var(--ending)"}[s.kind];
        node("rect", {x: x(s.from), y: y0, width: w, height: h, rx: 2, fill, opacity: s.kind === "ending" || s.kind === "released" ? .45 : 1}, svg);
        if (s.kind === "draining") node("line", {x1: x(s.from), x2: x(s.from), y1: y0 - 2, y2: y0 + h + 2, stroke: "var(--drain)", "stroke-width": 2}, svg);
      }
      const base = y0 + h, scale = n => base - h * Math.min(1, n / (2 * run.target));
      let d = "", open = false;
      for (const p of lane.load || []) {
        if (!open) { d += `M${round(x(p.t))} ${base}`; open = true; }
        d += `H${round(x(p.t))}V${round(scale(p.n))}`;
      }
      if (open) {
        const stop = Math.max(...(lane.spans || []).map(s => s.to), 0);
        node("path", {d: d + `H${round(x(stop))}V${base}Z`, fill: "var(--load)", opacity: .85}, svg);
      }
      node("line", {x1: LEFT, x2: W - RIGHT, y1: base + 3.5, y2: base + 3.5, class: "grid"}, svg);
      const groups = []; // cuts of one moment share a cross
      for (const c of (run.cuts || []).filter(c => c.lane === lane.name)) {
        const g = groups[groups.length - 1];
        if (g && x(c.t) - x(g[0].t) < 10) g.push(c); else groups.push([c]);
      }
      for (const cuts of groups) {
        const at = x(cuts[0].t), mid = y0 + h / 2;
        const g = node("path", {d: `M${at - 4} ${mid - 4}l8 8m0 -8l-8 8`, stroke: "var(--bad)", "stroke-width": 2.5, "stroke-linecap": "round", fill: "none"}, svg);
        node("title", {}, g, cuts.map(c => `${c.room}: ${c.people} people, ${c.cause}`).join("\n"));
        if (cuts.length > 1) node("text", {x: at + 9, y: mid + 4, style: "fill:var(--bad);font-weight:600"}, svg, cuts.length + " rooms");
      }
    });
    hover(svg, run, 2, bottom);
  };

  document.querySelectorAll(".run").forEach(section => {
    const run = runs[+section.dataset.run], host = section.querySelector(".charts");
    if (!run.samples || !run.samples.length) { html("p", "", host, "Nothing was recorded."); return; }
    const S = run.samples, T = run.target, taking = s => Math.max(0, s.present - s.draining);
    const cap = s => s.present * T;
    plot(host, run, {
      title: "Sessions against capacity", phases: true, height: 190, top: s => Math.max(s.sessions, cap(s)), least: T * 2,
      legend: [["line", "sessions", "var(--load)"], ["box", "capacity at target", "var(--capacity)"], ["box", "of it draining", "var(--drain-wash)"]],
      draw: (svg, y) => {
        node("path", {d: area(steps(S, cap, y), S, y), fill: "var(--drain-wash)"}, svg);
        node("path", {d: area(steps(S, s => taking(s) * T, y), S, y), fill: "var(--card)"}, svg);
        node("path", {d: area(steps(S, s => taking(s) * T, y), S, y), fill: "var(--capacity)"}, svg);
        node("path", {d: line(S, s => s.sessions, y), fill: "none", stroke: "var(--load)", "stroke-width": 2, "stroke-linejoin": "round"}, svg);
      },
    });
    plot(host, run, {
      title: "Instances", height: 140, top: s => Math.max(s.desired, s.present), least: 4,
      legend: [["line", "present", "var(--load)"], ["dash", "desired", "var(--ink)"], ["box", "draining", "var(--drain-wash)"]],
      draw: (svg, y) => {
        node("path", {d: area(steps(S, s => s.draining, y), S, y), fill: "var(--drain-wash)"}, svg);
        node("path", {d: steps(S, s => s.present, y), fill: "none", stroke: "var(--load)", "stroke-width": 2.5}, svg);
        node("path", {d: steps(S, s => s.desired, y), fill: "none", stroke: "var(--ink)", "stroke-width": 1.75, "stroke-dasharray": "5 3"}, svg);
      },
    });
    plot(host, run, {
      title: "Rooms", height: 130, top: s => Math.max(s.rooms, s.cuts), least: 5,
      legend: [["line", "open", "var(--room)"], ["line", "cut so far", "var(--bad)"]],
      draw: (svg, y) => {
        node("path", {d: area(steps(S, s => s.cuts, y), S, y), fill: "var(--bad-wash)"}, svg);
        node("path", {d: steps(S, s => s.rooms, y), fill: "none", stroke: "var(--room)", "stroke-width": 2}, svg);
        node("path", {d: steps(S, s => s.cuts, y), fill: "none", stroke: "var(--bad)", "stroke-width": 2.5}, svg);
      },
    });
    lanes(host, run);
  });

  document.getElementById("theme").addEventListener("click", () => {
    const root = document.documentElement, dark = getComputedStyle(root).colorScheme.includes("dark");
    root.dataset.theme = dark ? "light" : "dark";
  });
})();
